/** The calls about one container. They repeat while the engine is away, and each may be repeated without a second effect. */
import { z } from 'zod';
import { persist, reconnect } from '../../kernel/backoff.ts';
import { type EngineClient, EngineError, EngineUnreachable } from './engine-client.ts';

const created = z.object({ Id: z.string() });
const inspected = z.object({
  Id: z.string(),
  State: z.object({
    Status: z.string(),
    Running: z.boolean().default(false),
    ExitCode: z.int().default(0),
    OOMKilled: z.boolean().default(false),
  }),
});

const waited = z.object({ StatusCode: z.int() });

/** Repeats a call while the engine cannot be reached. */
export function whileAway<T>(
  call: () => Promise<T>,
  { signal, onAway }: { readonly signal?: AbortSignal | undefined; readonly onAway?: () => void } = {},
): Promise<T> {
  return persist(call, {
    backoff: reconnect,
    giveUp: (error) => !(error instanceof EngineUnreachable),
    ...(signal === undefined ? {} : { signal }),
    ...(onAway === undefined ? {} : { onRetry: onAway }),
  });
}

/**
 * Creates a container under a name that nothing else uses, and returns its id. A name that is taken was taken by an earlier
 * attempt, whose answer was lost.
 */
export async function createContainer(
  client: EngineClient,
  name: string,
  body: unknown,
  signal: AbortSignal,
): Promise<string> {
  return await whileAway(
    async () => {
      try {
        const { body: answer } = await client.call({
          method: 'POST',
          path: '/containers/create',
          query: { name },
          body,
          signal,
        });
        return created.parse(answer).Id;
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        const found = await inspectContainer(client, name, signal);
        if (found === undefined) throw error;
        return found.Id;
      }
    },
    { signal },
  );
}

/** Starts a container that was never started. A second start would execute the task again. */
export async function startContainer(
  client: EngineClient,
  id: string,
  how: { readonly signal: AbortSignal; onAway(): void },
): Promise<void> {
  let isFirst = true;
  await whileAway(async () => {
    const wasFirst = isFirst;
    isFirst = false;
    if (!wasFirst) {
      const found = await inspectContainer(client, id, how.signal);
      if (found?.State.Status !== 'created') return;
    }
    await client.call({ method: 'POST', path: `/containers/${id}/start`, signal: how.signal });
  }, how);
}

/** Waits for the end of a container that was started. Undefined: it does not exist any more. */
export async function waitForEnd(
  client: EngineClient,
  id: string,
  how: { readonly signal?: AbortSignal; onAway(): void },
): Promise<number | undefined> {
  return await whileAway(async () => {
    try {
      const { body } = await client.call({
        method: 'POST',
        path: `/containers/${id}/wait`,
        query: { condition: 'not-running' },
        signal: how.signal,
      });
      return waited.parse(body).StatusCode;
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }, how);
}

/** Undefined: it does not exist. */
export async function inspectContainer(
  client: EngineClient,
  id: string,
  signal?: AbortSignal,
): Promise<z.infer<typeof inspected> | undefined> {
  try {
    const { body } = await client.call({ method: 'GET', path: `/containers/${id}/json`, signal });
    return inspected.parse(body);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Success if it does not run any more. */
export async function signalContainer(
  client: EngineClient,
  id: string,
  name: 'SIGTERM' | 'SIGKILL',
  signal?: AbortSignal,
): Promise<void> {
  try {
    await client.call({ method: 'POST', path: `/containers/${id}/kill`, query: { signal: name }, signal });
  } catch (error) {
    // it has ended: 409, of podman 500; or it is gone
    if (!(error instanceof EngineError)) throw error;
  }
}

/** Ends a container if it runs, and removes it with the volumes that have no name. */
export async function removeContainer(client: EngineClient, id: string, signal?: AbortSignal): Promise<void> {
  try {
    await client.call({ method: 'DELETE', path: `/containers/${id}`, query: { force: true, v: true }, signal });
  } catch (error) {
    // 409: it is being removed
    if (isMissing(error) || (error instanceof EngineError && error.status === 409)) return;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof EngineError && error.status === 404;
}
