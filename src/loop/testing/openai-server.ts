/**
 * A server that speaks the OpenAI-compatible streaming protocol on a local port, each answer as a test scripts it: what real
 * providers meet, down to cut connections.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";

export interface OpenAiRequest {
  readonly messages: readonly {
    readonly role: string;
    readonly content: unknown;
    readonly tool_calls?: readonly {
      readonly id: string;
      readonly function: { readonly name: string; readonly arguments: string };
    }[];
    readonly tool_call_id?: string;
  }[];
  readonly tools?: readonly {
    readonly type: string;
    readonly function: { readonly name: string; readonly parameters: unknown };
  }[];
  readonly tool_choice?: unknown;
  readonly stream: boolean;
}

export type Answer = (response: http.ServerResponse, request: OpenAiRequest) => void;

export interface OpenAiServer extends AsyncDisposable {
  readonly baseURL: string;
  readonly requests: readonly OpenAiRequest[];
  /** Resolves when the client has gone away from an answer that had not ended. */
  readonly clientGone: Promise<void>;
}

/** Each request gets the next answer; one too many gets status 500. */
export async function openAiServer(answers: readonly Answer[]): Promise<OpenAiServer> {
  const requests: OpenAiRequest[] = [];
  let gone: () => void = () => undefined;
  const clientGone = new Promise<void>((resolve) => (gone = resolve));
  const server = http.createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    response.on("close", () => {
      if (!response.writableEnded) gone();
    });
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const request = JSON.parse(Buffer.concat(chunks).toString("utf8")) as OpenAiRequest;
      requests.push(request);
      const answer = answers[requests.length - 1];
      if (answer === undefined) response.writeHead(500).end();
      else answer(response, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseURL: `http://127.0.0.1:${port}/v1`,
    requests,
    clientGone,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A chunk of the stream: what the assistant adds to its message. */
export const delta = (added: object, finishReason: string | null = null): string =>
  event({
    id: "c1",
    object: "chat.completion.chunk",
    created: 1,
    model: "local",
    choices: [{ index: 0, delta: added, finish_reason: finishReason }],
  });

export const usage = (input: number, output: number, cached = 0): string =>
  event({
    id: "c1",
    object: "chat.completion.chunk",
    created: 1,
    model: "local",
    choices: [],
    usage: {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: { cached_tokens: cached },
    },
  });

export const event = (data: unknown): string => `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;

const begin = (response: http.ServerResponse): void => {
  response.writeHead(200, { "content-type": "text/event-stream" });
};

/** A whole answer. */
export const streams =
  (...events: readonly string[]): Answer =>
  (response) => {
    begin(response);
    for (const each of events) response.write(each);
    response.end(event("[DONE]"));
  };

/** These events, and then silence. */
export const stalls =
  (...events: readonly string[]): Answer =>
  (response) => {
    begin(response);
    response.flushHeaders();
    for (const each of events) response.write(each);
  };

/** These events, and then a connection that is no more. */
export const cuts =
  (...events: readonly string[]): Answer =>
  (response) => {
    begin(response);
    // Half an event is still on the wire when the connection goes.
    response.write(`${events.join("")}data: {"id":`, () => response.destroy());
  };

export const refuses =
  (status: number, message: string, headers: http.OutgoingHttpHeaders = {}): Answer =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify({ error: { message, type: "error", code: null } }));
  };

/** A call as OpenAI streams it: its head, then its arguments in pieces. */
export const streamedCall = (
  index: number,
  id: string,
  name: string,
  ...pieces: readonly string[]
): readonly string[] => [
  delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
  ...pieces.map((piece) => delta({ tool_calls: [{ index, function: { arguments: piece } }] })),
];
