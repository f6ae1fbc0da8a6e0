/**
 * An engine in a folder: a release's package, of which `package.json`, `dist/engine.js` and `migrations/tenant` are used. The
 * version and contract number in its package.json decide whether it is loaded, so that the code of an engine that cannot
 * work with this release is never run.
 */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import type { BusEngine } from '../../contract/bus.ts';
import type { FlowEngine } from '../../contract/flows.ts';
import { contractNumber, type Engine, oldestContract, type RunEngine } from '../../contract/engine.ts';
import { isVersion } from '../../kernel/text/version.ts';

export interface EnginePackage {
  readonly version: string;
  readonly contract: number;
}

/** Why an engine cannot be used, as users see it. */
export class EngineFault extends Error {
  override readonly name = 'EngineFault';
  /** Null: unknown. */
  readonly contract: number | null;

  constructor(message: string, contract: number | null = null, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.contract = contract;
  }
}

const manifestShape = z.object({
  name: z.literal('millrace', { error: 'its name is not millrace' }),
  version: z.string({ error: 'it has no version' }).refine(isVersion, 'its version is not of the form 1.2.3'),
  millrace: z.object(
    { contract: z.int({ error: 'its millrace.contract is not a whole number' }).min(1) },
    { error: 'it names no contract (millrace.contract): it is older than side-by-side engines' },
  ),
});

/** Throws an EngineFault. */
export async function readEnginePackage(folder: string): Promise<EnginePackage> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch((error: unknown) => {
    throw new EngineFault('it has no package.json', null, error);
  });
  const { version, millrace } = parseManifest(text);
  for (const path of [entry, 'migrations/tenant']) {
    await stat(join(folder, path)).catch((error: unknown) => {
      throw new EngineFault(`it has no ${path}; it may not be built`, millrace.contract, error);
    });
  }
  return { version, contract: millrace.contract };
}

function parseManifest(text: string): z.output<typeof manifestShape> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new EngineFault('its package.json is not JSON', null, error);
  }
  const parsed = manifestShape.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new EngineFault(`its package.json is not Millrace's: ${parsed.error.issues.map((i) => i.message).join('; ')}`);
}

/** Why this release cannot work with such an engine; undefined: it can. */
export function contractFault({ version, contract }: EnginePackage): string | undefined {
  const speaks = `engine ${version} speaks contract ${contract}, this release ${contractNumber}`;
  if (contract < oldestContract) return `${speaks}: too old; upgrade its tenants to a newer engine`;
  if (contract > contractNumber) return `${speaks}: too new; install a newer release of Millrace`;
  return undefined;
}

const entry = 'dist/engine.js';

const ownFunctions = ['pending', 'migrate', 'scheduler', 'fetch', 'prune'] as const satisfies readonly (keyof Engine)[];

/** Functions for runs. In contract 3 they were not in a group. */
const oldRunFunctions = [
  'claim',
  'report',
  'renew',
  'cancellations',
  'logs',
  'definitions',
  'stash',
] as const satisfies readonly (keyof RunEngine)[];
const runFunctions = [...oldRunFunctions, 'offers', 'accept'] as const satisfies readonly (keyof RunEngine)[];

/** An engine has all functions of a group, or none. */
const optionalGroups: Readonly<Record<string, readonly string[]>> = {
  bus: ['publish', 'courier'] satisfies readonly (keyof BusEngine)[],
  flows: [
    'fetch',
    'blank',
    'execute',
    'put',
    'settle',
    'accept',
    'waiting',
    'due',
    'unfinished',
  ] satisfies readonly (keyof FlowEngine)[],
};

/** Every function that an engine with this face must have. */
function requiredFunctions(contract: number, { functions }: EngineFace): readonly string[] {
  if (contract < 4) return [...ownFunctions, ...oldRunFunctions];
  const isBegun = (group: string): boolean => functions.some((name) => name.startsWith(`${group}.`));
  const groups = Object.entries(optionalGroups).filter(([group]) => isBegun(group));
  return [
    ...ownFunctions,
    ...[['runs', runFunctions] as const, ...groups].flatMap(([group, names]) =>
      names.map((name) => `${group}.${name}`),
    ),
  ];
}

/**
 * The URL that the engine's code is imported from. It changes with the file's inode and time, because Node caches modules by
 * URL: without that, it would neither retry a failed import nor notice a replaced file.
 */
export async function entryUrl(folder: string): Promise<string> {
  const file = join(folder, entry);
  const { ino, mtimeMs } = await stat(file);
  const url = pathToFileURL(file);
  url.search = `?${ino}-${Math.trunc(mtimeMs)}`;
  return url.href;
}

/** The checked properties of an exported engine, as plain data that another process can send. */
export interface EngineFace {
  readonly version: unknown;
  readonly contract: unknown;
  /** Functions of groups are named like `runs.claim`. */
  readonly functions: readonly string[];
}

export function faceOf(exported: unknown): EngineFace | undefined {
  if (typeof exported !== 'object' || exported === null) return undefined;
  const parts = exported as Readonly<Record<string, unknown>>;
  const functions = Object.entries(parts).flatMap(([name, part]) =>
    typeof part === 'object' && part !== null
      ? namesOfFunctions(part).map((inner) => `${name}.${inner}`)
      : typeof part === 'function'
        ? [name]
        : [],
  );
  return { version: parts['version'], contract: parts['contract'], functions };
}

function namesOfFunctions(group: object): string[] {
  return Object.entries(group).flatMap(([name, part]) => (typeof part === 'function' ? [name] : []));
}

/** Throws an EngineFault if the exported engine does not match its package.json. */
export function checkFace(face: EngineFace | undefined, { version, contract }: EnginePackage): void {
  if (face === undefined) throw new EngineFault(`its ${entry} exports no engine`, contract);
  const missing = requiredFunctions(contract, face).filter((name) => !face.functions.includes(name));
  if (missing.length > 0) throw new EngineFault(`its engine lacks ${missing.join(', ')}`, contract);
  if (face.version !== version)
    throw new EngineFault(`its package is ${version}, but its engine says ${String(face.version)}`, contract);
  if (face.contract !== contract) {
    const says = `its package.json names contract ${contract}, but its engine says ${String(face.contract)}`;
    throw new EngineFault(says, contract);
  }
}
