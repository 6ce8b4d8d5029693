/** "2 * -3" → [{ type: "number", value: 2 }, { type: "operator", value: "*" }, …] */
export function tokenize(text) {
  const tokens = [];
  const pattern = /\s*(?:(\d+(?:\.\d+)?)|([-+*/()]))/y;
  while (pattern.lastIndex < text.length) {
    const start = pattern.lastIndex;
    const match = pattern.exec(text);
    if (match === null) {
      if (text.slice(start).trim() === "") break;
      throw new SyntaxError(`Unexpected "${text.slice(start).trim()[0]}" at ${start + 1}`);
    }
    if (match[1] !== undefined) tokens.push({ type: "number", value: Number(match[1]) });
    else tokens.push({ type: "operator", value: match[2] });
  }
  return tokens;
}
