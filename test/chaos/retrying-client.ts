/** A client of the API that asks again while the API or the database is away. Every call made with it may safely be repeated. */
import { CallFailed, type Client, makeClient } from '../../src/http/client.ts';
import type { Endpoints } from '../harness/product.ts';
import { until } from '../harness/until.ts';

const answerWithinMs = 10_000;
const patienceMs = 60_000;

export function retryingClient(base: string, key: string): Client<Endpoints> {
  const call = makeClient<Endpoints>({
    base,
    headers: { authorization: `Bearer ${key}` },
    fetch: (request) => fetch(request, { signal: AbortSignal.timeout(answerWithinMs) }),
  });
  const persist = async (name: never, input: never): Promise<unknown> => {
    const { answer } = await until(
      `${String(name)} is answered`,
      async () => {
        try {
          return { answer: await call(name, input) };
        } catch (error) {
          if (error instanceof CallFailed && error.status < 500) throw error;
          return undefined;
        }
      },
      patienceMs,
    );
    return answer;
  };
  return persist as unknown as Client<Endpoints>;
}
