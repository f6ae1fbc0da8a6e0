/**
 * Wake-ups between processes, of the kinds that `contract/channels.ts` lists. NOTIFY works within one database, so all of
 * them go through the control database, on one connection per process that both listens and notifies.
 *
 * 1. Listeners of this process are called at once. Other processes get one NOTIFY for all wake-ups that gathered meanwhile.
 *    Those of a patient kind gather for some milliseconds, unless others are sent before.
 * 2. After a lost connection every listener is called without a payload, because it may have missed something.
 * 3. A payload that is too long, or that does not parse here, is left out.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Client } from 'pg';
import { channels, patientKinds, type WakeKind, type WakePayload } from '../contract/channels.ts';
import { isConnectionLoss } from '../errors.ts';
import { delayMs, reconnect } from '../kernel/backoff.ts';
import { newId } from '../kernel/id.ts';
import type { Log } from '../kernel/log.ts';
import { loop, pause, type Service, within } from '../kernel/service.ts';
import { type Address, clientConfig } from './address.ts';

const channel = 'millrace_wake';

/** PostgreSQL refuses notifications of 8,000 bytes and more; many share one statement. */
const maxPayloadBytes = 2_000;

/** How long wake-ups of patient kinds gather. People do not notice, and a chain of short tasks sends many. */
const gatherMs = 20;

/** How long a start waits for the connection. The process starts without it, too. */
const longestStartMs = 5_000;

type Listener<K extends WakeKind> = (payload: WakePayload<K> | undefined) => void;
/** `about` is undefined if wake-ups about any subject may have been missed. */
type AnyListener<K extends WakeKind> = (about: string | undefined, payload: WakePayload<K> | undefined) => void;

/** The part of the hub for senders and receivers. */
export interface WakeUps {
  /** Call it after the commit that it announces. `about`: a tenant's or host's id, or `everyone`. */
  send<K extends WakeKind>(kind: K, about: string, payload?: WakePayload<K>): void;
  /** Listens for one tenant or host, or for `everyone`. Returns a function that removes the listener. */
  on<K extends WakeKind>(kind: K, about: string, listener: Listener<K>): () => void;
  /** Listens for a kind, about any subject. */
  onAny<K extends WakeKind>(kind: K, listener: AnyListener<K>): () => void;
}

type Heard = (about: string | undefined, payload: unknown) => void;

/** The key of listeners for any subject. No id and no name is empty. */
const anything = '';

export class WakeHub implements WakeUps {
  readonly #origin = newId().slice(-12);
  /** By kind and subject. */
  readonly #listeners = new Map<string, Set<Heard>>();
  readonly #pending = new Set<string>();
  readonly #address: Address;
  readonly #log: Log;
  #client: Client | undefined;
  #sending = false;
  #gathering: NodeJS.Timeout | undefined;
  readonly service: Service;

  constructor(address: Address, log: Log) {
    this.#address = address;
    this.#log = log;
    this.service = this.#makeService();
  }

  send<K extends WakeKind>(kind: K, about: string, payload?: WakePayload<K>): void {
    this.#tell(kind, about, payload);
    this.#pending.add(`${about} ${kind} ${encodePayload(payload)}`);
    if (!patientKinds.has(kind)) void this.#flush();
    else this.#gathering ??= setTimeout(() => this.#flushGathered(), gatherMs).unref();
  }

  #flushGathered(): void {
    this.#gathering = undefined;
    void this.#flush();
  }

  on<K extends WakeKind>(kind: K, about: string, listener: Listener<K>): () => void {
    return this.#listen(`${kind} ${about}`, (_, payload) => listener(payload as WakePayload<K> | undefined));
  }

  onAny<K extends WakeKind>(kind: K, listener: AnyListener<K>): () => void {
    return this.#listen(`${kind} ${anything}`, listener as Heard);
  }

  #listen(key: string, heard: Heard): () => void {
    const set = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, set.add(heard));
    return () => {
      set.delete(heard);
      if (set.size === 0 && this.#listeners.get(key) === set) this.#listeners.delete(key);
    };
  }

  #tell(kind: string, about: string, payload: unknown): void {
    const exact = this.#listeners.get(`${kind} ${about}`) ?? [];
    const others = this.#listeners.get(`${kind} ${anything}`) ?? [];
    for (const heard of [...exact, ...others]) this.#call(kind, () => heard(about, payload));
  }

  #call(kind: string, listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.#log.error({ err: error, kind }, 'a listener for wake-ups failed');
    }
  }

  /** Calls all listeners, because wake-ups may have been missed. */
  #tellAll(): void {
    const all = Array.from(this.#listeners, ([key, set]) => Array.from(set, (heard) => ({ key, heard }))).flat();
    for (const { key, heard } of all) this.#call(key, () => heard(undefined, undefined));
  }

  /** One NOTIFY statement at a time; wake-ups that gather meanwhile share the next one. */
  async #flush(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    // after this turn of the event loop, so that wake-ups of the same turn are included and local work goes first
    await nextTurn();
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    while (this.#client && this.#pending.size > 0) {
      const keys = [...this.#pending];
      this.#pending.clear();
      if (!(await this.#notify(this.#client, keys))) break;
    }
    this.#sending = false;
  }

  async #notify(client: Client, keys: readonly string[]): Promise<boolean> {
    const text = 'select pg_notify($1, key) from unnest($2::text[]) as key';
    try {
      await client.query({ name: 'wake', text, values: [channel, keys.map((key) => `${this.#origin} ${key}`)] });
      return true;
    } catch (error) {
      this.#log.debug({ err: error }, 'wake-ups could not be sent');
      // after a lost connection they are sent on the next one; sweeps make up for those that the server rejected
      if (isConnectionLoss(error)) for (const key of keys) this.#pending.add(key);
      return false;
    }
  }

  #hear(payload: string): void {
    const [origin, about = '', kind = '', ...rest] = payload.split(' ');
    if (origin !== this.#origin) this.#tell(kind, about, decodePayload(kind, rest.join(' ')));
  }

  async #connect(): Promise<Client> {
    const client = new Client(clientConfig(this.#address, 'millrace wake'));
    client.on('error', () => {});
    try {
      await client.connect();
      client.on('notification', (message) => this.#hear(message.payload ?? ''));
      await client.query(`listen ${channel}`);
      return client;
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
  }

  #makeService(): Service {
    let connected = signalOnce();
    const listening = loop(
      'wake',
      (signal) => this.#listenWhileConnected(signal, () => connected.give()),
      (error) => this.#log.debug({ err: error }, 'there is no connection for wake-ups; trying again'),
      (failures) => delayMs(reconnect, failures),
    );
    return {
      name: 'wake',
      start: async () => {
        await listening.start();
        await within(longestStartMs, connected.given);
      },
      stop: async () => {
        await listening.stop();
        connected = signalOnce();
      },
    };
  }

  /** Returns shortly after the connection was lost. Rejects if it cannot be opened. */
  async #listenWhileConnected(signal: AbortSignal, onConnected: () => void): Promise<void> {
    const client = await this.#connect();
    this.#client = client;
    onConnected();
    this.#tellAll();
    void this.#flush();
    await ended(client, signal).finally(() => (this.#client = undefined));
    if (signal.aborted) return;
    this.#log.debug('the connection for wake-ups is lost');
    await pause(delayMs(reconnect, 0), signal);
  }
}

function encodePayload(payload: unknown): string {
  const text = payload === undefined ? '' : JSON.stringify(payload);
  return Buffer.byteLength(text) > maxPayloadBytes ? '' : text;
}

function decodePayload(kind: string, text: string): unknown {
  if (text === '' || !Object.hasOwn(channels, kind)) return undefined;
  try {
    return channels[kind as WakeKind].safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function signalOnce(): { readonly given: Promise<void>; readonly give: () => void } {
  let give = (): void => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give: () => give() };
}

async function ended(client: Client, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      signal.removeEventListener('abort', done);
      resolve();
    };
    client.once('end', done);
    signal.addEventListener('abort', done, { once: true });
    if (signal.aborted) done();
  });
  await client.end().catch(() => {});
}
