import { tokenize } from "./tokens.js";

/**
 * Text → tree: { type: "number", value } or { type: "binary", operator, left, right }.
 *
 *   sum     = product { ("+" | "-") product }
 *   product = signed { ("*" | "/") signed }
 *   signed  = [ "-" | "+" ] ( number | "(" sum ")" )
 */
export function parse(text) {
  const tokens = tokenize(text);
  let position = 0;

  const peek = () => tokens[position]?.value;
  const take = () => tokens[position++];

  function sum() {
    let left = product();
    while (peek() === "+" || peek() === "-") left = binary(take().value, left, product());
    return left;
  }

  function product() {
    let left = signed();
    while (peek() === "*" || peek() === "/") left = binary(take().value, left, rightOperand());
    return left;
  }

  function rightOperand() {
    if (peek() === "-") take();
    return signed();
  }

  function signed() {
    if (peek() === "+") {
      take();
      return signed();
    }
    if (peek() === "-") {
      take();
      return negate(signed());
    }
    return primary();
  }

  function primary() {
    const token = take();
    if (token === undefined) throw new SyntaxError("Unexpected end of input");
    if (token.type === "number") return token;
    if (token.value !== "(") throw new SyntaxError(`Unexpected "${token.value}"`);
    const inner = sum();
    if (take()?.value !== ")") throw new SyntaxError('Expected ")"');
    return inner;
  }

  const tree = sum();
  if (position < tokens.length) throw new SyntaxError(`Unexpected "${peek()}"`);
  return tree;
}

const binary = (operator, left, right) => ({ type: "binary", operator, left, right });
const negate = (node) =>
  node.type === "number" ? { ...node, value: -node.value } : binary("-", { type: "number", value: 0 }, node);
