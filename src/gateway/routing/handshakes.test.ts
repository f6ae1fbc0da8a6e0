import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Handshakes } from './handshakes.ts';

const hour = 3_600_000;
let server: Server;
let handshakes: Handshakes;
/** Connections whose handshake has begun, by the first byte that they sent. */
let begun: { readonly letter: string; readonly socket: Socket }[];
let clients: Socket[];
let arrived: number;

beforeEach(async () => {
  begun = [];
  clients = [];
  arrived = 0;
  server = createServer((socket) => {
    handshakes.add(socket);
    socket.once('readable', () => arrived++);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  for (const client of clients) client.destroy();
  handshakes.close();
  server.close();
});

function limit(limits: ConstructorParameters<typeof Handshakes>[1]): void {
  const begin = (socket: Socket): void => {
    begun.push({ letter: String(socket.read(1)), socket });
    socket.resume();
  };
  handshakes = new Handshakes(begin, { places: 4, placesPerAddress: 2, slowMs: hour, waitMs: hour, ...limits });
}

/** A client at this address, whose letter, if there is one, has been received. */
async function connectFrom(address: string, letter = ''): Promise<Socket> {
  const { port } = server.address() as AddressInfo;
  const accepted = once(server, 'connection');
  const client = connect({ port, host: '127.0.0.1', localAddress: address });
  client.on('error', () => {});
  clients.push(client);
  await accepted;
  if (letter === '') return client;
  const before = arrived;
  client.write(letter);
  await vi.waitFor(() => expect(arrived).toBe(before + 1), 10_000);
  return client;
}

const closed = (client: Socket): Promise<unknown> =>
  new Promise((resolve) => (client.closed ? resolve(undefined) : client.once('close', resolve)));
const letters = (): string => begun.map(({ letter }) => letter).join('');
function succeed(letter: string): void {
  const found = begun.find((each) => each.letter === letter);
  if (found !== undefined) handshakes.succeed(found.socket);
}

it('an address has its share of places, further connections wait, and other addresses do not', async () => {
  limit({});
  for (const letter of 'abc') await connectFrom('127.0.0.1', letter);
  await connectFrom('127.0.0.2', 'x');
  expect(letters()).toBe('abx');
  succeed('b');
  expect(letters()).toBe('abxc');
});

it('addresses take turns at places that become free', async () => {
  limit({ places: 2 });
  for (const letter of 'abcd') await connectFrom('127.0.0.1', letter);
  await connectFrom('127.0.0.2', 'x');
  await connectFrom('127.0.0.3', 'z');
  expect(letters()).toBe('ab');
  for (const letter of 'abcx') succeed(letter);
  expect(letters()).toBe('abcxzd');
});

it('a connection that sends nothing takes no place, and is ended after a time', async () => {
  limit({ waitMs: 100 });
  const silent = [await connectFrom('127.0.0.1'), await connectFrom('127.0.0.2')];
  await Promise.all(silent.map(closed));
  expect(begun).toEqual([]);
});

it('a slow handshake is ended only when its place is wanted', async () => {
  limit({ placesPerAddress: 1, slowMs: 50 });
  const slow = await connectFrom('127.0.0.1', 'a');
  const other = await connectFrom('127.0.0.2', 'x');
  await connectFrom('127.0.0.1', 'b');
  await closed(slow);
  await vi.waitFor(() => expect(letters()).toBe('axb'), 10_000);
  expect(other.closed).toBe(false);
});

it('a connection that closes gives its place to the next one', async () => {
  limit({ placesPerAddress: 1 });
  const first = await connectFrom('127.0.0.1', 'a');
  await connectFrom('127.0.0.1', 'b');
  first.destroy();
  await vi.waitFor(() => expect(letters()).toBe('ab'), 10_000);
});

it('at the end, connections without a complete handshake are closed', async () => {
  limit({ places: 1 });
  const all = [
    await connectFrom('127.0.0.1', 'a'),
    await connectFrom('127.0.0.1', 'b'),
    await connectFrom('127.0.0.2'),
  ];
  handshakes.close();
  await Promise.all(all.map(closed));
  expect(letters()).toBe('a');
});
