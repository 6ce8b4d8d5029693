/** The beginning and the end of an output of any size, in bounded memory. */

/** Of each end, where nothing keeps the rest. */
const bytesShown = 16 * 1024;
/** Of each end, where the loop keeps what it does not show. */
const bytesKept = 2 * 1024 * 1024;

export class BoundedOutput {
  readonly #bytesMax: number;

  readonly #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #dropped = 0;

  constructor({ kept = false }: { readonly kept?: boolean } = {}) {
    this.#bytesMax = kept ? bytesKept : bytesShown;
  }

  add(piece: Buffer): void {
    const bytesMax = this.#bytesMax;
    const room = bytesMax - this.#headBytes;
    const first = piece.subarray(0, Math.max(0, room));
    if (first.length > 0) {
      // A copy: a slice would keep the whole buffer of the pipe alive.
      this.#head.push(Buffer.from(first));
      this.#headBytes += first.length;
    }
    const rest = piece.subarray(first.length);
    if (rest.length === 0) return;
    const kept = Buffer.from(rest.subarray(Math.max(0, rest.length - bytesMax)));
    this.#dropped += rest.length - kept.length;
    this.#tail.push(kept);
    this.#tailBytes += kept.length;
    if (this.#tailBytes <= 4 * bytesMax) return;
    const whole = Buffer.concat(this.#tail);
    this.#tail = [Buffer.from(whole.subarray(whole.length - bytesMax))];
    this.#dropped += whole.length - bytesMax;
    this.#tailBytes = bytesMax;
  }

  /** What was not UTF-8 is shown as U+FFFD. */
  text(): string {
    const bytesMax = this.#bytesMax;
    const tail = Buffer.concat(this.#tail);
    const shown = tail.subarray(Math.max(0, tail.length - bytesMax));
    const dropped = this.#dropped + tail.length - shown.length;
    if (dropped === 0) return Buffer.concat([...this.#head, shown]).toString("utf8");
    const head = wholeCharacters(Buffer.concat(this.#head));
    const end = fromWholeCharacter(shown);
    return `${head}\n[${dropped} bytes of the output are left out here; to see them write it to a file and read parts of that]\n${end}`;
  }
}

/** Without the beginning of a character that was cut. */
function wholeCharacters(bytes: Buffer): string {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) break;
    if (byte >= 0xc0) return bytes.toString("utf8", 0, bytes.length - (back < lengthOf(byte) ? back : 0));
  }
  return bytes.toString("utf8");
}

function fromWholeCharacter(bytes: Buffer): string {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.toString("utf8", start);
}

const lengthOf = (lead: number): number => (lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2);
