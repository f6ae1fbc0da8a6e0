/** Outbound HTTP without a guard, for receivers of tests on this machine. */
import { Agent, request as httpRequest } from 'node:http';
import type { Outbound, OutboundAnswer, OutboundRequest } from '../../src/contract/bus.ts';

/** The caller closes it. */
export function plainOutbound(): Outbound & { close(): void } {
  const agent = new Agent({ keepAlive: true, maxSockets: 512 });
  return { post: (request, signal) => post(agent, request, signal), close: () => agent.destroy() };
}

function post(agent: Agent, sent: OutboundRequest, signal: AbortSignal): Promise<OutboundAnswer> {
  const startedMs = performance.now();
  const ms = (): number => performance.now() - startedMs;
  return new Promise((resolve) => {
    const headers = { ...sent.headers, 'content-length': String(sent.body.length) };
    const timeout = AbortSignal.timeout(sent.totalMs);
    const request = httpRequest(sent.url, {
      method: 'POST',
      agent,
      headers,
      signal: AbortSignal.any([signal, timeout]),
    });
    request.on('response', (response) => {
      const seconds = Number(response.headers['retry-after']);
      const retryAfterMs = Number.isFinite(seconds) ? seconds * 1_000 : null;
      // the status decides, whatever becomes of the body
      resolve({ status: response.statusCode ?? 0, retryAfterMs, excerpt: '', ms: ms() });
      response.on('error', () => {});
      response.resume();
    });
    request.on('error', (error) => {
      resolve({ code: timeout.aborted ? 'timeout' : 'reset', detail: error.message, ms: ms() });
    });
    request.end(sent.body);
  });
}
