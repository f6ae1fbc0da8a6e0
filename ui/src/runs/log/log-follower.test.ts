import { expect, test, vi } from 'vitest';
import { LogFollower, type LogSnapshot } from './log-follower.ts';

/** A server that sends the log from the byte asked for, as far as it has come; the first time it breaks off. */
function server(answers: readonly { readonly text: string; readonly breaks: boolean }[]) {
  let opened = 0;
  return {
    opened: () => opened,
    open: async (_: AbortSignal, from: number): Promise<Response> => {
      const answer = answers[opened++];
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          for (const byte of new TextEncoder().encode(answer?.text).subarray(from))
            controller.enqueue(new Uint8Array([byte]));
          if (answer?.breaks) setTimeout(() => controller.error(new Error('gone')), 20);
          else controller.close();
        },
      });
      return new Response(body);
    },
  };
}

function textOf({ store }: LogSnapshot): string[] {
  return store.read(0, store.rows).map((row) => row.text);
}

test('a log whose server went away goes on where it was, with nothing doubled', async () => {
  const { open, opened } = server([
    { text: 'one\ntw', breaks: true },
    { text: 'one\ntwo\nthree\n', breaks: false },
  ]);
  let firsts = 0;
  const follower = new LogFollower({ open, hasEnded: async () => true, onFirstOutput: () => firsts++ });
  const states: string[] = [];
  await new Promise<void>((resolve) => {
    follower.subscribe(() => {
      const { state } = follower.snapshot();
      if (states.at(-1) !== state) states.push(state);
      if (state === 'complete') resolve();
    });
  });
  expect(textOf(follower.snapshot())).toEqual(['one', 'two', 'three']);
  expect(states).toEqual(['following', 'lost', 'following', 'complete']);
  expect([opened(), firsts]).toEqual([2, 1]);
});

test('a refusal is final, and keeps the words of the server', async () => {
  let opened = 0;
  const open = async (): Promise<Response> => {
    opened++;
    return Response.json({ title: 'There is no such thing', detail: 'there is no run 7' }, { status: 404 });
  };
  const follower = new LogFollower({ open, hasEnded: async () => false, onFirstOutput: () => {} });
  vi.useFakeTimers();
  try {
    follower.subscribe(() => {});
    await vi.advanceTimersByTimeAsync(60_000);
    expect(follower.snapshot()).toMatchObject({
      state: 'refused',
      refusal: { status: 404, message: 'there is no run 7' },
    });
    expect(opened).toBe(1);
  } finally {
    vi.useRealTimers();
  }
});

test('it waits longer from try to try, and begins anew when something has come', async () => {
  vi.useFakeTimers();
  const at: number[] = [];
  const begun = Date.now();
  /** The fifth try brings a byte, the others nothing. */
  const open = async (): Promise<Response> => {
    at.push(Date.now() - begun);
    if (at.length === 5) return new Response('x');
    throw new Error('gone');
  };
  const follower = new LogFollower({ open, hasEnded: async () => false, onFirstOutput: () => {} });
  try {
    const leave = follower.subscribe(() => {});
    await vi.advanceTimersByTimeAsync(9_200);
    leave();
    expect(at).toEqual([0, 500, 1_500, 3_500, 7_500, 8_000, 9_000]);
  } finally {
    vi.useRealTimers();
  }
});

test('the follower stops reading when it has no listeners', async () => {
  let signal: AbortSignal | undefined;
  const open = (given: AbortSignal): Promise<Response> => {
    signal = given;
    return new Promise(() => {});
  };
  const follower = new LogFollower({ open, hasEnded: async () => false, onFirstOutput: () => {} });
  const leave = follower.subscribe(() => {});
  expect(signal?.aborted).toBe(false);
  leave();
  expect(signal?.aborted).toBe(true);
});
