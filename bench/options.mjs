/** What people write on the command line, checked. */

export function wholeNumber(option, text) {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1)
    throw new Error(`${option} wants a whole number above 0, not "${text}"`);
  return number;
}

export function namesFrom(option, text, known) {
  const names = text.split(",").filter((name) => name !== "");
  const strange = names.find((name) => !known.includes(name));
  if (strange !== undefined || names.length === 0) {
    throw new Error(`${option} wants some of ${known.join(", ")} with commas between them, not "${strange ?? text}"`);
  }
  return names;
}
