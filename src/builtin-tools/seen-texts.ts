/** Texts that were seen, by the hash of their bytes, to show a difference from. A cache: what is missing costs words only. */
const charsMax = 8 * 1024 * 1024;

export class SeenTexts {
  readonly #texts = new Map<string, string>();
  #chars = 0;

  get(contentHash: string): string | undefined {
    return this.#texts.get(contentHash);
  }

  keep(contentHash: string, text: string): void {
    if (text.length > charsMax / 4) return;
    this.#forget(contentHash);
    this.#texts.set(contentHash, text);
    this.#chars += text.length;
    for (const oldest of this.#texts.keys()) {
      if (this.#chars <= charsMax) return;
      this.#forget(oldest);
    }
  }

  #forget(contentHash: string): void {
    this.#chars -= this.#texts.get(contentHash)?.length ?? 0;
    this.#texts.delete(contentHash);
  }
}
