const operations = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => {
    if (b === 0) throw new RangeError("Division by zero");
    return a / b;
  },
};

export function evaluate(node) {
  if (node.type === "number") return node.value;
  return operations[node.operator](evaluate(node.left), evaluate(node.right));
}
