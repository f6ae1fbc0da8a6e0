/**
 * Limits TLS handshakes. A handshake takes half a millisecond of the event loop, and needs no key: thousands of connections that
 * send their first bytes at once would keep every other client waiting for seconds.
 *
 * | state | a connection enters it | and leaves it |
 * |---|---|---|
 * | silent | when it is accepted | with its first bytes. It takes no place |
 * | waiting | when there is no free place for its address | in its turn. Addresses take turns |
 * | under way | when it gets a place | when its handshake or the connection ends |
 *
 * 1. The number of places limits the handshakes of one turn of the event loop, whatever clients send or hold back.
 * 2. One address has half of the places at most, so that clients of other addresses find one.
 * 3. While others wait for its place, a handshake that takes longer than `slowMs` is ended with its connection.
 * 4. A connection that is silent or waiting for longer than `waitMs` is ended.
 */
import type { Socket } from 'node:net';

const handshakeLimits = {
  places: 256,
  placesPerAddress: 128,
  /** Most handshakes take less, also from far away. Slower ones are ended only during a flood. */
  slowMs: 250,
  waitMs: 10_000,
};

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  /** Address and port of the client: no other open connection has both. */
  readonly name: string;
  readonly timer: NodeJS.Timeout;
  begunMs: number;
}

/** The connections of one address that have sent something, oldest first. */
interface Line {
  readonly waiting: Set<Connection>;
  readonly underWay: Set<Connection>;
}

type Client = Pick<Socket, 'remoteAddress' | 'remotePort'>;
const nameOf = ({ remoteAddress, remotePort }: Client): string => `${remoteAddress} ${remotePort}`;

export class Handshakes {
  readonly #begin: (socket: Socket) => void;
  readonly #limits: typeof handshakeLimits;
  readonly #open = new Set<Connection>();
  /** By address. */
  readonly #lines = new Map<string, Line>();
  /** Lines with a waiting connection, in the order of their turns. */
  readonly #turns = new Set<Line>();
  /** Oldest first. */
  readonly #underWay = new Map<string, Connection>();
  #sweep: NodeJS.Timeout | undefined;

  /** `begin` starts the handshake of a connection whose first bytes have been read. */
  constructor(begin: (socket: Socket) => void, limits: Partial<typeof handshakeLimits> = {}) {
    this.#begin = begin;
    this.#limits = { ...handshakeLimits, ...limits };
  }

  /** Takes a connection that was accepted. */
  add(socket: Socket): void {
    const timer = setTimeout(() => socket.destroy(), this.#limits.waitMs);
    const connection = { socket, address: socket.remoteAddress ?? '', name: nameOf(socket), timer, begunMs: 0 };
    this.#open.add(connection);
    socket.on('error', () => {}); // `close` follows
    socket.once('close', () => this.#finish(connection));
    socket.once('readable', () => this.#standInLine(connection));
  }

  /** The handshake of this client has succeeded. */
  succeed(client: Client): void {
    const connection = this.#underWay.get(nameOf(client));
    if (connection !== undefined) this.#finish(connection);
  }

  /** Ends all connections whose handshake is not complete. */
  close(): void {
    for (const { socket } of this.#open) socket.destroy();
  }

  #standInLine(connection: Connection): void {
    const { socket, address } = connection;
    if (socket.destroyed) return;
    const line = this.#lines.get(address) ?? { waiting: new Set(), underWay: new Set() };
    this.#lines.set(address, line);
    line.waiting.add(connection);
    this.#turns.add(line);
    this.#admit();
  }

  #finish(connection: Connection): void {
    const { timer, address, name } = connection;
    clearTimeout(timer);
    this.#open.delete(connection);
    const line = this.#lines.get(address);
    if (line === undefined) return;
    line.waiting.delete(connection);
    if (line.waiting.size === 0) this.#turns.delete(line);
    if (line.underWay.delete(connection)) this.#underWay.delete(name);
    if (line.waiting.size + line.underWay.size === 0) this.#lines.delete(address);
    this.#admit();
  }

  /** Gives free places to those that wait, one for each address in turn. */
  #admit(): void {
    const { places, placesPerAddress } = this.#limits;
    for (const line of this.#turns) {
      if (this.#underWay.size >= places) break;
      const [next] = line.waiting;
      if (next === undefined || line.underWay.size >= placesPerAddress) continue;
      line.waiting.delete(next);
      // behind the others; the loop comes to it again
      this.#turns.delete(line);
      if (line.waiting.size > 0) this.#turns.add(line);
      this.#start(next, line);
    }
    this.#scheduleSweep();
  }

  #scheduleSweep(): void {
    if (this.#turns.size === 0 || this.#sweep !== undefined) return;
    this.#sweep = setTimeout(() => this.#endSlow(), this.#limits.slowMs / 5);
  }

  #start(connection: Connection, { underWay }: Line): void {
    const { socket, name, timer } = connection;
    clearTimeout(timer);
    connection.begunMs = performance.now();
    underWay.add(connection);
    this.#underWay.set(name, connection);
    this.#begin(socket);
  }

  /** Ends slow handshakes whose places are wanted. */
  #endSlow(): void {
    this.#sweep = undefined;
    const { places, placesPerAddress, slowMs } = this.#limits;
    const startedBeforeMs = performance.now() - slowMs;
    const end = (connections: Iterable<Connection>): void => {
      for (const { socket, begunMs } of connections) {
        if (begunMs > startedBeforeMs) return;
        socket.destroy();
      }
    };
    if (this.#underWay.size >= places) end(this.#underWay.values());
    for (const { underWay } of this.#turns) if (underWay.size >= placesPerAddress) end(underWay);
    this.#scheduleSweep();
  }
}
