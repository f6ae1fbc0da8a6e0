import { afterEach, describe, expect, it } from 'vitest';
import { type LocalServer, shell, type SomeHandlers, startLocalServer } from '../../../../test/harness/cli/shell.ts';
import { MillraceError } from '../../../errors.ts';
import { newId } from '../../../kernel/id.ts';

let server: LocalServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});
const start = async (handlers: SomeHandlers): Promise<LocalServer> => {
  server = await startLocalServer(handlers);
  return server;
};

/** A bus that remembers pages by their Idempotency-Key, and may be unavailable at first. */
function makeBus(failures = 0) {
  const pages = new Map<string, { events: number; first: string; last: string }>();
  let next = 1;
  let left = failures;
  const handlers: SomeHandlers = {
    'POST /bus/topics/{name}': async ({ body, request: { headers } }) => {
      if (left-- > 0) throw new MillraceError('database_unavailable', 'gone for a moment');
      const events = JSON.parse(body.toString()) as unknown[];
      const key = headers.get('idempotency-key') ?? '';
      const known = pages.get(key);
      if (known) return Response.json(known, { headers: { 'idempotent-replayed': 'true' } });
      const page = { events: events.length, first: String(next), last: String((next += events.length) - 1) };
      pages.set(key, page);
      return Response.json(page);
    },
  };
  return { pages, handlers };
}

const lines = (count: number): string =>
  Array.from(
    { length: count },
    (_, i) => `${JSON.stringify({ type: 'update', url: `https://a.example/${i}` })}\n`,
  ).join('');

describe('publish -f', () => {
  it('publish cuts a file into pages of 1,000, and repeated it publishes nothing twice', async () => {
    const bus = makeBus(1);
    const { env } = await start(bus.handlers);
    const publish = () => shell(['publish', 'orders', '-f', '-', '--json'], { env, stdin: lines(2_001) });
    const first = await publish();
    expect(JSON.parse(first.stdout)).toEqual({ events: 2_001, repeated: 0, first: '1', last: '2001' });
    expect([...bus.pages.values()].map(({ events }) => events)).toEqual([1_000, 1_000, 1]);
    expect(JSON.parse((await publish()).stdout)).toEqual({ events: 2_001, repeated: 2_001, first: '1', last: '2001' });
    expect(bus.pages.size).toBe(3);
  });

  it('equal pages of one file are all published', async () => {
    const bus = makeBus();
    const { env } = await start(bus.handlers);
    const same = lines(1).repeat(2_000);
    expect((await shell(['publish', 'orders', '-f', '-'], { env, stdin: same })).stdout).toBe(
      '2,000 events published: numbers 1 to 2000\n',
    );
  });

  it('a file that is missing is named', async () => {
    const { env } = await start(makeBus().handlers);
    const ran = await shell(['publish', 'orders', '-f', 'absent.ndjson'], { env });
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining('absent.ndjson: file not found') as unknown });
    expect(ran.stderr).not.toContain('ENOENT');
  });

  it('a line that is not JSON is named by its number', async () => {
    const { env } = await start(makeBus().handlers);
    const ran = await shell(['publish', 'orders', '-f', '-'], { env, stdin: '{"type":"update"}\n\n{"type"\n' });
    expect(ran).toMatchObject({ code: 1, stderr: expect.stringContaining('stdin:3 is not JSON') as unknown });
  });

  it('a fault of the server names the line of the file', async () => {
    const { env } = await start({
      'POST /bus/topics/{name}': async () => {
        const fault = { path: '[1].url', message: 'must be an https URL' };
        throw new MillraceError('bad_request', `bad event: ${fault.path}: ${fault.message}`, { faults: [fault] });
      },
    });
    const ran = await shell(['publish', 'orders', '-f', '-'], { env, stdin: `\n${lines(2)}` });
    expect(ran.stderr).toContain('bad event: stdin:3 url: must be an https URL');
  });
});

describe('publish', () => {
  it('publish without an address explains that --url is the server, and calls nobody', async () => {
    const local = await start(makeBus().handlers);
    const ran = await shell(['publish', 'orders', '--type', 'update', '--url', local.url], { env: local.env });
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining('--url is the server') as unknown });
    expect(local.calls).toEqual([]);
  });
});

const event = (id: string) => ({ topic: 'orders', type: 'update', url: `https://a.example/${id}`, t: 0, id });

/** A bus with one batch of two events, then no more. */
function makePull(role: 'root' | 'client', subscriber?: object) {
  const id = newId();
  let served = false;
  const me = { kind: 'key', role, tenant: null, name: role } as never;
  const handlers: SomeHandlers = {
    'GET /api/me': async () => me,
    'POST /api/keys': async ({ body }) => ({ id, name: body.name, role: body.role, tenant: null, key: 'root-key' }),
    'DELETE /api/keys/{id}': async () => {},
    'GET /bus/subscriber': async () => {
      if (subscriber === undefined) throw new MillraceError('not_found', 'subscriber not found');
      return subscriber as never;
    },
    'POST /bus/subscription': async () => {},
    'DELETE /bus/subscriber': async () => {},
    'GET /bus/subscriber/batch': async ({ signal }) => {
      if (!served) {
        served = true;
        return { id: 'b1', lease: 1, until: '2030-01-01T00:00:00Z', events: [event('1'), event('2')] };
      }
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return new Response(null, { status: 204 });
    },
    'POST /bus/subscriber/batch/{id}/ack': async () => {},
    'POST /bus/subscriber/batch/{id}/nack': async () => {},
  };
  return { id, handlers };
}

describe('listen', () => {
  it('listen as root uses a temporary key, acknowledges what it printed, and removes the key', async () => {
    const { id, handlers } = makePull('root');
    const { env, calls } = await start(handlers);
    const ran = await shell(['listen', 'orders', '--count', '2'], { env });
    expect(ran).toMatchObject({ code: 0 });
    expect(ran.stdout).toBe(
      '1 1970-01-01T00:00:00.000Z orders update https://a.example/1\n2 1970-01-01T00:00:00.000Z orders update https://a.example/2\n',
    );
    expect(calls.slice(-3)).toEqual([
      'POST /bus/subscriber/batch/b1/ack',
      'DELETE /bus/subscriber',
      `DELETE /api/keys/${id}`,
    ]);
  });

  it('Ctrl-C ends listen, and the temporary key is removed', async () => {
    const { id, handlers } = makePull('root');
    const { env, calls } = await start(handlers);
    const ending = new AbortController();
    const onOutput = (text: string): void => void (text.includes('a.example/2') && ending.abort());
    const ran = await shell(['listen', 'orders'], { env, signal: ending.signal, onOutput });
    expect(ran.code).toBe(130);
    expect(calls.at(-1)).toBe(`DELETE /api/keys/${id}`);
  });

  it('listen gives a batch back of which it printed only a part', async () => {
    const { env, calls } = await start(makePull('client').handlers);
    const ran = await shell(['listen', 'orders', '--count', '1', '--json'], { env });
    expect(ran.stdout).toBe(`${JSON.stringify(event('1'))}\n`);
    expect(calls.slice(-2)).toEqual(['POST /bus/subscriber/batch/b1/nack', 'DELETE /bus/subscriber']);
  });

  it('listen does not take the events of a callback away', async () => {
    const former = { subscriber: 'shop--1a2b3c4d', kind: 'http', topics: ['orders'], filter: null };
    const { env, calls } = await start(makePull('client', former).handlers);
    const ran = await shell(['listen', 'orders'], { env });
    expect(ran).toMatchObject({ code: 1, stderr: expect.stringContaining('delivers to a callback') as unknown });
    expect(calls.filter((call) => !call.startsWith('GET'))).toEqual([]);
  });
});

describe('subscriber', () => {
  const replay = (position: string, state: 'running' | 'done' | 'failed') => ({
    id: newId(),
    from: '0',
    to: '10',
    position,
    sent: Number(position),
    only_undelivered: false,
    state,
    by: 'root',
    at: '2030-01-01T00:00:00.000Z',
  });

  it('replay --wait prints the progress, and ends with 1 if the replay failed', async () => {
    const scenes = [replay('5', 'running'), replay('7', 'failed')];
    const { env, calls } = await start({
      'POST /bus/subscribers/{id}/replays': async () => ({ id: newId() }),
      'GET /bus/subscribers/{id}/replays/{replay}': async () => scenes.shift() ?? replay('10', 'done'),
    });
    const ran = await shell(['subscriber', 'replay', 'shop', '--from', '1', '--wait'], { env });
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('at event 5 of 1 to 10 (50 %), 5 events sent');
    expect(ran.stderr).toContain('failed: at event 7');
    expect(calls[0]).toBe('POST /bus/subscribers/shop/replays');
  });

  it('a point that is neither a number nor a time is an error of the command line', async () => {
    const ran = await shell(['subscriber', 'resume', 'shop', '--from', 'yesterday']);
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining('neither the number') as unknown });
  });
});

describe('subscribe', () => {
  it('a fault of a topic or a filter is named by its argument', async () => {
    const { env, calls } = await start({ 'POST /bus/subscription': async () => {} });
    const args = ['subscribe', 'https://a.example/', 'orders', 'Refunds', '--filter', '{"foo": 1}'];
    const { stderr } = await shell(args, { env });
    expect(stderr).toContain('bad data in payload: topics[1]: use 1 to 64 of the characters a-z and _');
    expect(stderr).toContain('--filter.foo: is not a field');
    expect(calls).not.toContain('GET /bus/subscriber');
  });

  it('change sends the fields of --set, and a fault names its field', async () => {
    const asked: unknown[] = [];
    const { env } = await start({
      'PATCH /bus/subscribers/{id}': async ({ body }) => {
        asked.push(body);
        throw new MillraceError('not_found', 'subscriber not found');
      },
    });
    const change = (set: string) => shell(['subscriber', 'change', 'shop--1', '--set', set], { env });
    expect(await change('{"strands": 0}')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--set.strands') as unknown,
    });
    expect((await change('[8]')).code).toBe(2);
    expect(asked).toEqual([]);
    expect((await change('{"ordering": "key", "strands": 8}')).code).toBe(5);
    expect(asked).toEqual([{ ordering: 'key', strands: 8 }]);
  });

  it('a command about the subscriber of the own key says what to do if there is none', async () => {
    const { env, calls } = await start(makePull('root').handlers);
    const ran = await shell(['subscriber', 'pause'], { env });
    expect(ran).toMatchObject({ code: 5, stderr: expect.stringContaining('give a name') as unknown });
    expect(calls).toEqual(['GET /bus/subscriber']);
  });
});

describe('errands', () => {
  it('retry --subscriber retries the errands of that subscriber, and of no other', async () => {
    const asked: unknown[] = [];
    const scheduled = {
      queue: 'main',
      work: 'deliver',
      state: 'scheduled',
      run_at: null,
      worker: null,
      taken_at: null,
      losses: 0,
      attempts: 3,
      reason: null,
    } as const;
    const errand = (key: string, subscriber: string) => ({ ...scheduled, key, subscriber });
    const none = { scheduled: 0, ready: 0, pending: 0, poisoned: 0 };
    const { env } = await start({
      'GET /api/errands': async () => ({
        items: [errand('a', 'shop--1'), errand('b', 'billing--2'), errand('c', 'shop--1')],
        next: null,
        counts: { main: none, aux: none },
      }),
      'POST /api/errands/retry': async ({ body }) => {
        asked.push(body);
        return { promoted: 2, revived: 0 };
      },
    });
    expect((await shell(['errands', 'retry', '--subscriber', 'shop--1'], { env })).code).toBe(0);
    expect(asked).toEqual([{ queue: 'main', keys: ['a', 'c'] }]);
    expect((await shell(['errands', 'retry'], { env })).code).toBe(2);
  });

  it('retry --poisoned retries all poisoned errands of the queue', async () => {
    const none = { scheduled: 0, ready: 0, pending: 0, poisoned: 0 };
    const poisoned = {
      queue: 'main',
      key: 'k',
      work: null,
      subscriber: null,
      state: 'poisoned',
      run_at: null,
    } as const;
    const asked: unknown[] = [];
    const { env } = await start({
      'GET /api/errands': async () => ({
        items: [{ ...poisoned, worker: null, taken_at: null, losses: 5, attempts: 0, reason: null }],
        next: null,
        counts: { main: none, aux: none },
      }),
      'POST /api/errands/retry': async ({ body }) => {
        asked.push(body);
        return { promoted: 0, revived: 1 };
      },
    });
    const ran = await shell(['errands', 'retry', '--poisoned'], { env });
    expect(asked).toEqual([{ queue: 'main', keys: ['k'] }]);
    expect(ran.stdout).toBe('1 made ready (1 of them poisoned before)\n');
  });
});
