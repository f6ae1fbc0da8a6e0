/** The two calls of the page behind a link. They carry nothing but the link itself. */
import { CallFailed } from '../../../src/http/client.ts';

/** The task that a link answers. */
export interface LinkedTask {
  readonly title: string;
  readonly flow: string;
  readonly name: string;
  readonly form: unknown;
  readonly input?: unknown;
}

/** The same address is this page for browsers that ask for HTML. */
const accept = { accept: 'application/json' };

export function fetchTask(token: string, signal: AbortSignal): Promise<LinkedTask> {
  return call(token, { signal, headers: accept }) as Promise<LinkedTask>;
}

export function sendAnswer(
  token: string,
  answer: Readonly<Record<string, unknown>>,
): Promise<{ readonly outcome: string }> {
  const request = {
    method: 'POST',
    body: JSON.stringify(answer),
    headers: { ...accept, 'content-type': 'application/json' },
  };
  return call(token, request) as Promise<{ outcome: string }>;
}

/** Without the cookie of a session: who has the link may answer, whoever else they are. */
async function call(token: string, request: RequestInit): Promise<unknown> {
  const response = await fetch(`/answers/${encodeURIComponent(token)}`, { ...request, credentials: 'omit' });
  const text = await response.text();
  if (response.ok) return JSON.parse(text) as unknown;
  throw new CallFailed(response.status, readProblem(text), text);
}

function readProblem(text: string): CallFailed['problem'] {
  try {
    return JSON.parse(text) as CallFailed['problem'];
  } catch {
    return undefined;
  }
}
