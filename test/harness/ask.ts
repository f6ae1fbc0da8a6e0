/** Sends one HTTP request exactly as written, including a `Host` header, which `fetch` would not send. */
import { type IncomingHttpHeaders, request } from 'node:http';

export interface Question {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  json(): unknown;
}

export function ask(url: string, { method = 'GET', headers = {}, body }: Question = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { ...headers } }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => (text += chunk));
      answer.on('error', reject);
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          text,
          json: () => JSON.parse(text) as unknown,
        }),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

export function bearer(key: string): { readonly authorization: string } {
  return { authorization: `Bearer ${key}` };
}
