/**
 * The agents that open connections to receivers, and keep them for the next request.
 *
 * 1. A connection is dialled to the checked address itself, and its remote address is compared before anything is sent.
 * 2. A connection is kept per host, port and checked address: a name that moves gets a new connection.
 * 3. The name stays the one for SNI and for the certificate.
 */
import { readFileSync } from 'node:fs';
import { type AgentOptions, Agent as HttpAgent, type ClientRequest, type ClientRequestArgs } from 'node:http';
import { Agent as HttpsAgent, type RequestOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import { MillraceError } from '../errors.ts';
import { canonicalAddress, type OutboundSettings } from './addresses.ts';

/** The options of a request, with the address to dial. */
export interface DialOptions extends RequestOptions {
  readonly checkedAddress: string;
}

/** The connection leads elsewhere than to the checked address. */
export class OtherAddress extends Error {}

/** How long an unused connection is kept, below the 60 s after which common receivers close theirs. */
const idleMs = 15_000;
/** Unused connections to one address. */
const maxFreePerAddress = 16;

type Connected = (error: Error | null, stream: Duplex) => void;

/** Unused connections of both agents. */
class FreeSockets {
  readonly #most: number;
  /** With the listener of each, which is removed with it: a connection may be kept many thousand times. */
  readonly #sockets = new Map<Duplex, () => void>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Returns false if the connection must be closed instead. */
  add(socket: Duplex): boolean {
    if (this.#sockets.size >= this.#most) return false;
    const forget = (): void => void this.#sockets.delete(socket);
    this.#sockets.set(socket, forget);
    socket.once('close', forget);
    return true;
  }

  delete(socket: Duplex): void {
    const forget = this.#sockets.get(socket);
    if (forget !== undefined) socket.off('close', forget);
    this.#sockets.delete(socket);
  }
}

class GuardedHttpAgent extends HttpAgent {
  readonly #free: FreeSockets;

  constructor(options: AgentOptions, free: FreeSockets) {
    super(options);
    this.#free = free;
  }

  override getName(options?: ClientRequestArgs): string {
    return `${super.getName(options)}:${addressIn(options)}`;
  }

  override createConnection(options: ClientRequestArgs, onConnected?: Connected): Duplex | null | undefined {
    const address = addressIn(options);
    return checkRemote(super.createConnection({ ...options, host: address }, onConnected), address);
  }

  override keepSocketAlive(socket: Duplex): boolean {
    super.keepSocketAlive(socket);
    return this.#free.add(socket);
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    this.#free.delete(socket);
    super.reuseSocket(socket, request);
  }
}

class GuardedHttpsAgent extends HttpsAgent {
  readonly #free: FreeSockets;

  constructor(options: AgentOptions & { readonly secureContext: SecureContext }, free: FreeSockets) {
    super(options);
    this.#free = free;
  }

  override getName(options?: RequestOptions): string {
    return `${super.getName(options)}:${addressIn(options)}`;
  }

  override createConnection(options: RequestOptions, onConnected?: Connected): Duplex | null | undefined {
    const address = addressIn(options);
    return checkRemote(super.createConnection({ ...options, host: address }, onConnected), address);
  }

  override keepSocketAlive(socket: Duplex): boolean {
    super.keepSocketAlive(socket);
    return this.#free.add(socket);
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    this.#free.delete(socket);
    super.reuseSocket(socket, request);
  }
}

function addressIn(options: object | undefined): string {
  const address: unknown = options === undefined ? undefined : Reflect.get(options, 'checkedAddress');
  if (typeof address !== 'string') throw new Error('a request without a checked address');
  return address;
}

/** This listener is the first, so the connection is closed before the request is written. */
function checkRemote(stream: Duplex | null | undefined, address: string): Duplex | null | undefined {
  const socket = stream as Socket | null | undefined;
  socket?.prependOnceListener('connect', () => {
    const remote = socket.remoteAddress ?? 'nowhere';
    if (canonicalAddress(remote) !== canonicalAddress(address))
      socket.destroy(new OtherAddress(`connected to ${remote} instead of ${address}`));
  });
  return stream;
}

export interface SocketsOptions {
  /** Unused connections that are kept in all. */
  readonly maxFree: number;
  /** A file with certificates of further authorities. */
  readonly caFile?: string | undefined;
  /** For the advice in faults. */
  readonly settings: OutboundSettings;
}

export interface Sockets {
  /** `isFresh`: for this request only. */
  agentFor(isSecure: boolean, isFresh: boolean): HttpAgent;
  close(): void;
}

export function makeSockets({ maxFree, caFile, settings }: SocketsOptions): Sockets {
  const free = new FreeSockets(maxFree);
  const secureContext = createSecureContext(authorities(caFile, settings));
  const kept = { keepAlive: true, maxFreeSockets: maxFreePerAddress, timeout: idleMs };
  const single = { keepAlive: false };
  const plain = new GuardedHttpAgent(kept, free);
  const secure = new GuardedHttpsAgent({ ...kept, secureContext }, free);
  const freshPlain = new GuardedHttpAgent(single, free);
  const freshSecure = new GuardedHttpsAgent({ ...single, secureContext }, free);
  return {
    agentFor(isSecure, isFresh) {
      if (isSecure) return isFresh ? freshSecure : secure;
      return isFresh ? freshPlain : plain;
    },
    close() {
      for (const agent of [plain, secure, freshPlain, freshSecure]) agent.destroy();
    },
  };
}

/** Further authorities stand beside the usual ones, and beside those of NODE_EXTRA_CA_CERTS. */
function authorities(caFile: string | undefined, settings: OutboundSettings): { readonly ca?: string[] } {
  if (caFile === undefined) return {};
  const extra = process.env['NODE_EXTRA_CA_CERTS'];
  const more = extra === undefined || extra === '' ? [] : [readCertificates(extra, 'NODE_EXTRA_CA_CERTS')];
  return { ca: [...rootCertificates, ...more, readCertificates(caFile, `${settings}_CA`)] };
}

function readCertificates(path: string, variable: string): string {
  try {
    const text = readFileSync(path, 'utf8');
    if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new MillraceError('bad_configuration', `${variable}: the file cannot be read: ${why}`, { cause: error });
  }
  throw new MillraceError('bad_configuration', `${variable}: ${path} has no certificate in PEM format`);
}
