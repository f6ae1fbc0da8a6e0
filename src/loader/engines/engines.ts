/**
 * The engines of this installation: the one of this release, and those under `$MILLRACE_HOME/engines/<version>`
 * (`millrace engine add`).
 *
 * - An engine is imported when a tenant first needs it, and kept while its file is unchanged.
 * - A missing or broken engine is looked up again each time: adding, repairing or replacing it needs no restart.
 * - No content of that folder makes a function of this file throw.
 */
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Engine } from '../../contract/engine.ts';
import { formatCause } from '../../control/format-reason.ts';
import { type EngineFault as Unusable, noEngine } from '../../control/reasons.ts';
import { within } from '../../kernel/service.ts';
import { compareVersions } from '../../kernel/text/version.ts';
import { adaptContract3, type OldEngine } from './contract-3.ts';
import {
  checkFace,
  contractFault,
  EngineFault,
  type EnginePackage,
  entryUrl,
  faceOf,
  readEnginePackage,
} from './package.ts';
import { LoadChecks, trialFault } from './load-checks.ts';

export type FoundEngine = { readonly ok: true; readonly engine: Engine } | ({ readonly ok: false } & Unusable);

/** The part of `Engines` that the loader needs. */
export interface EngineSource {
  find(version: string): Promise<FoundEngine>;
}

export interface InstalledEngine {
  readonly version: string;
  readonly contract: number | null;
  /** Why it cannot be used; null: it can. */
  readonly fault: string | null;
  /** It is the engine of this release. */
  readonly running: boolean;
}

export interface TriedEngine extends InstalledEngine {
  /** Whether its code can be loaded; null: it was not tried, or the trial is still under way. */
  readonly loads: boolean | null;
}

export function enginesFolder(home: string): string {
  return join(home, 'engines');
}

/** An engine whose code has not loaded within this time counts as unusable. */
const maxImportMs = 20_000;

interface Loaded {
  /** Its entry file. Another file under the same path is another engine. */
  readonly url: string | undefined;
  readonly finding: Promise<FoundEngine>;
}

export class Engines implements EngineSource {
  readonly #running: Engine;
  readonly #folder: string;
  readonly #found = new Map<string, Loaded>();
  readonly #checks = new LoadChecks();

  constructor(running: Engine, folder: string) {
    this.#running = running;
    this.#folder = folder;
  }

  /** Finds the engine of a version. Concurrent calls share one import. An engine whose files were removed stays loaded. */
  async find(version: string): Promise<FoundEngine> {
    if (version === this.#running.version) return { ok: true, engine: this.#running };
    const url = await this.#entry(version);
    const known = this.#found.get(version);
    if (known !== undefined && (url === undefined || url === known.url)) return known.finding;
    const loaded = { url, finding: this.#load(version) };
    this.#found.set(version, loaded);
    const found = await loaded.finding;
    if (!found.ok && this.#found.get(version) === loaded) this.#found.delete(version);
    return found;
  }

  async #entry(version: string): Promise<string | undefined> {
    if (!(await this.#isHere(version))) return undefined;
    return entryUrl(join(this.#folder, version)).catch(() => undefined);
  }

  /** Compares with the listed names, because a version comes from a tenant's database and must not be used as a path. */
  async #isHere(version: string): Promise<boolean> {
    return (await namesIn(this.#folder)).includes(version);
  }

  /** Whether the engine is installed and usable according to its package.json. Runs none of its code. */
  async has(version: string): Promise<boolean> {
    return (await this.list()).some((each) => each.version === version && each.fault === null);
  }

  /** Like `has`, with the reason if it is not usable. */
  async usable(version: string): Promise<{ readonly ok: true } | ({ readonly ok: false } & Unusable)> {
    const known = (await this.list()).find((each) => each.version === version);
    if (known?.fault === null) return { ok: true };
    return { ok: false, ...(known === undefined ? await this.#missing(version) : { detail: known.fault }) };
  }

  /** Loads the engine's code in a process of its own. Returns why that fails, or undefined if it succeeds. */
  async diagnose(version: string): Promise<string | undefined> {
    if (version === this.#running.version || !(await this.#isHere(version))) return undefined;
    return readUsable(join(this.#folder, version)).then(
      (found) => trialFault(join(this.#folder, version), found),
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
  }

  /** Lists the engines by their package.json. Runs none of their code. */
  list(): Promise<InstalledEngine[]> {
    return listEngines(this.#running, this.#folder);
  }

  /** Lists the engines, after it has tried to load each in a process of its own. It waits for `waitMs` at most. */
  async listTried(waitMs: number): Promise<TriedEngine[]> {
    return tryEngines(await this.list(), this.#folder, { checks: this.#checks, waitMs });
  }

  async #load(version: string): Promise<FoundEngine> {
    try {
      if (!(await this.#isHere(version))) return { ok: false, ...(await this.#missing(version)) };
      return { ok: true, engine: await load(join(this.#folder, version)) };
    } catch (error) {
      return { ok: false, detail: error instanceof EngineFault ? error.message : String(error) };
    }
  }

  async #missing(version: string): Promise<Unusable> {
    const missing = { version, available: (await this.list()).map((engine) => engine.version) };
    return { detail: formatCause(noEngine({ detail: '', missing })), missing };
  }
}

/** Lists all engines, newest first. Runs none of their code. */
export async function listEngines(running: EnginePackage, folder: string): Promise<InstalledEngine[]> {
  const { version, contract } = running;
  const others = (await namesIn(folder)).filter((name) => name !== version);
  const described = await Promise.all(others.map((name) => describe(join(folder, name))));
  return [{ version, contract, fault: null, running: true }, ...described].toSorted((a, b) =>
    compareVersions(b.version, a.version),
  );
}

/** `checks`: the results of earlier trials. */
export async function tryEngines(
  engines: readonly InstalledEngine[],
  folder: string,
  { checks, waitMs }: { readonly checks: LoadChecks; readonly waitMs: number },
): Promise<TriedEngine[]> {
  return Promise.all(
    engines.map(async (each) => {
      const { version, contract, fault, running } = each;
      if (running || fault !== null || contract === null) return { ...each, loads: running ? true : null };
      const tried = checks.findFault(join(folder, version), { version, contract }).then((found) => ({ found }));
      const done = await within(waitMs, tried);
      if (done === undefined) return { ...each, loads: null };
      return { ...each, fault: done.found ?? null, loads: done.found === undefined };
    }),
  );
}

/** Leaves out hidden folders: their engines are being added or removed. */
async function namesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((): string[] => []);
  return names.filter((name) => !name.startsWith('.'));
}

async function describe(folder: string): Promise<InstalledEngine> {
  const version = basename(folder);
  try {
    const { contract } = await readUsable(folder);
    return { version, contract, fault: null, running: false };
  } catch (error) {
    const contract = error instanceof EngineFault ? error.contract : null;
    return { version, contract, fault: error instanceof Error ? error.message : String(error), running: false };
  }
}

async function readUsable(folder: string): Promise<EnginePackage> {
  const found = await readEnginePackage(folder).catch((error: unknown) => {
    if (!(error instanceof EngineFault)) throw error;
    throw new EngineFault(`engine ${basename(folder)} cannot be used: ${error.message}`, error.contract, error);
  });
  if (found.version !== basename(folder))
    throw new EngineFault(`the folder ${basename(folder)} holds engine ${found.version}`, found.contract);
  const fault = contractFault(found);
  if (fault !== undefined) throw new EngineFault(fault, found.contract);
  return found;
}

async function load(folder: string): Promise<Engine> {
  const found = await readUsable(folder);
  try {
    const module: unknown = await within(maxImportMs, import(await entryUrl(folder)));
    if (module === undefined) throw new Error(`its code did not finish loading within ${maxImportMs / 1_000} s`);
    const exported: unknown = Reflect.get(module as object, 'engine');
    checkFace(faceOf(exported), found);
    return found.contract < 4 ? adaptContract3(exported as OldEngine) : (exported as Engine);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new EngineFault(`engine ${found.version} cannot be loaded: ${why}`, found.contract, error);
  }
}
