/**
 * Caches task definitions by (tenant, task, version). The least recently used are dropped first, no entry is older than a day,
 * and entries that the API reports as changed are dropped. All misses of one turn of the event loop are fetched by one request.
 * Missing definitions are never cached.
 */
import {
  answerFull,
  type DefinitionKey,
  type Failure,
  type Invalidation,
  type TaskDefinition,
} from '../contract/wire.ts';
import { MillraceError } from '../errors.ts';

export interface DefinitionCacheOptions {
  fetch(
    keys: readonly DefinitionKey[],
  ): Promise<{ readonly definitions: readonly TaskDefinition[]; readonly failed: readonly Failure[] }>;
  now(): number;
  readonly capacity?: number;
  readonly maxAgeMs?: number;
}

interface Entry {
  readonly definition: TaskDefinition;
  readonly fetchedMs: number;
}

interface Miss {
  readonly key: DefinitionKey;
  readonly found: Promise<TaskDefinition | undefined>;
  resolve(definition: TaskDefinition | undefined): void;
  reject(error: unknown): void;
}

/** Definitions in one request. The API limits its answer, and lists tenants whose definitions did not fit. */
const batchSize = 1_000;

export class DefinitionCache {
  readonly #options: DefinitionCacheOptions;
  readonly #capacity: number;
  readonly #maxAgeMs: number;
  readonly #entries = new Map<string, Entry>();
  readonly #misses = new Map<string, Miss>();
  #waiting: Miss[] = [];
  /** Counts invalidations. The answer to an earlier request is used, but not kept. */
  #generation = 0;

  constructor(options: DefinitionCacheOptions) {
    this.#options = options;
    this.#capacity = options.capacity ?? 10_000;
    this.#maxAgeMs = options.maxAgeMs ?? 24 * 3_600_000;
  }

  /** The cached definition, without waiting. */
  peek(key: DefinitionKey): TaskDefinition | undefined {
    const id = idOf(key);
    const entry = this.#entries.get(id);
    if (!entry) return undefined;
    this.#entries.delete(id);
    if (this.#options.now() - entry.fetchedMs > this.#maxAgeMs) return undefined;
    this.#entries.set(id, entry); // moves it to the end: most recently used
    return entry.definition;
  }

  /** Undefined: the definition does not exist (any more). Rejects if its tenant is unreachable. */
  async get(key: DefinitionKey): Promise<TaskDefinition | undefined> {
    return this.peek(key) ?? (await this.#miss(key).found);
  }

  has(key: DefinitionKey): boolean {
    return this.#entries.has(idOf(key));
  }

  /** Fetches those of these definitions that are not cached. Never rejects: `get` fetches again what could not be fetched. */
  async load(keys: readonly DefinitionKey[]): Promise<void> {
    const missing = new Map(keys.filter((key) => !this.has(key)).map((key) => [idOf(key), key]));
    await Promise.all(Array.from(missing.values(), (key) => this.#miss(key).found.catch(() => {})));
  }

  drop({ tenant, kind, id }: Invalidation): void {
    this.#generation++;
    for (const [key, { definition }] of this.#entries) {
      const changed = kind === 'task' ? definition.task : definition.project.id;
      if (definition.tenant === tenant && changed === id) this.#entries.delete(key);
    }
  }

  /** Drops everything, because it is not known what has changed. */
  dropAll(): void {
    this.#generation++;
    this.#entries.clear();
  }

  #miss({ tenant, task, version }: DefinitionKey): Miss {
    const id = idOf({ tenant, task, version });
    const known = this.#misses.get(id);
    if (known) return known;
    const miss = makeMiss({ tenant, task, version });
    this.#misses.set(id, miss);
    if (this.#waiting.push(miss) === 1) queueMicrotask(() => this.#fetchWaiting());
    return miss;
  }

  #fetchWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (let i = 0; i < waiting.length; i += batchSize) void this.#fetch(waiting.slice(i, i + batchSize));
  }

  async #fetch(misses: readonly Miss[]): Promise<void> {
    const generation = this.#generation;
    try {
      const { definitions, failed } = await this.#options.fetch(misses.map((miss) => miss.key));
      const byId = new Map(definitions.map((definition) => [idOf(definition), definition]));
      const failures = new Map(failed.map((failure) => [failure.tenant, failure]));
      // each answer has some of them, so this terminates
      const isLater = ({ key }: Miss): boolean =>
        byId.size > 0 && !byId.has(idOf(key)) && failures.get(key.tenant)?.code === answerFull;
      const later = misses.filter(isLater);
      for (const miss of misses) {
        if (isLater(miss)) continue;
        this.#misses.delete(idOf(miss.key));
        settle(miss, byId.get(idOf(miss.key)), failures.get(miss.key.tenant));
      }
      if (generation === this.#generation) this.#keep(byId);
      if (later.length > 0) await this.#fetch(later);
    } catch (error) {
      for (const miss of misses) {
        this.#misses.delete(idOf(miss.key));
        miss.reject(error);
      }
    }
  }

  #keep(definitions: ReadonlyMap<string, TaskDefinition>): void {
    const fetchedMs = this.#options.now();
    for (const [id, definition] of definitions) this.#entries.set(id, { definition, fetchedMs });
    for (const id of this.#entries.keys()) {
      if (this.#entries.size <= this.#capacity) return;
      this.#entries.delete(id);
    }
  }
}

function idOf({ tenant, task, version }: DefinitionKey): string {
  return `${task}/${version}/${tenant}`;
}

function settle(miss: Miss, definition: TaskDefinition | undefined, failure: Failure | undefined): void {
  if (definition !== undefined || failure === undefined) miss.resolve(definition);
  else miss.reject(new MillraceError('tenant_unavailable', failure.detail));
}

function makeMiss(key: DefinitionKey): Miss {
  let resolve: Miss['resolve'] = () => {};
  let reject: Miss['reject'] = () => {};
  const found = new Promise<TaskDefinition | undefined>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { key, found, resolve, reject };
}
