/** `millrace engine`: the engines in the home of this machine. They are files; the server only says which tenants use them. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { z } from 'zod';
import { contractNumber } from '../../../contract/engine.ts';
import { MillraceError } from '../../../errors.ts';
import { CallFailed } from '../../../http/client.ts';
import { packageVersion } from '../../../kernel/process/package-files.ts';
import { compareVersions } from '../../../kernel/text/version.ts';
import { addEngine, removeEngine } from '../../../loader/engines/store.ts';
import { enginesFolder, listEngines, type TriedEngine, tryEngines } from '../../../loader/engines/engines.ts';
import { LoadChecks } from '../../../loader/engines/load-checks.ts';
import { findHome } from '../../session/connection.ts';
import { examples } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { count } from '../../print/output.ts';
import { listEngineUsers, listTenants } from '../../session/pages.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';

const addFlags = z.object({ replace: z.boolean().default(false), force: z.boolean().default(false) });
const removeFlags = z.object({ force: z.boolean().default(false) });
/** Engines are tried one after the other; each trial ends after 20 s. */
const maxTrialMs = 60_000;
const forceHelp = 'even if it is not known whether a tenant uses it, for example without a server';

export function addEngineCommands(program: Command, io: Io): void {
  const engine = program
    .command('engine')
    .description('Manage the installed versions of Millrace. Each tenant is served by its own version.');
  const add = engine
    .command('add')
    .description('Add a version to this home. Tenants can be upgraded to it at once; nothing is restarted.')
    .argument('<source>', 'a folder with a release of Millrace, or its tarball (`npm pack millrace@VERSION`)')
    .option('--replace', 'replace the same version, if no tenant uses it')
    .option('--force', 'with --replace: although tenants use it, or it is not known whether they do')
    .action(verb(io, addFlags, addOne));
  examples(add, [
    ['millrace engine add millrace-0.2.0.tgz', 'as `npm pack millrace@0.2.0` wrote it'],
    ['millrace engine add "$(npm root -g)/millrace"', 'keep the installed release before you install a newer one'],
  ]);
  const list = engine
    .command('list')
    .description('List the installed versions, whether they are usable, and which tenants use them.');
  list.action(verb(io, noOptions, listAll));
  examples(list, [['millrace engine list', 'the newest first']]);
  const remove = engine
    .command('remove')
    .description('Remove a version that no tenant uses.')
    .argument('<version>', 'as `millrace engine list` shows it')
    .option('--force', forceHelp)
    .action(verb(io, removeFlags, removeOne));
  examples(remove, [['millrace engine remove 0.1.0', 'once all tenants are upgraded']]);
}

async function addOne(
  session: Session,
  [source = '']: readonly string[],
  flags: z.output<typeof addFlags>,
): Promise<void> {
  const mayReplace = (version: string): Promise<void> => rejectInUse(session, version, 'replaced', flags.force);
  const added = await addEngine(
    await findHome(session.place),
    resolve(session.io.cwd, source),
    flags.replace ? { mayReplace } : {},
  );
  const { version, contract, migrations } = added;
  session.out.answer(added, () =>
    session.out.line(`engine ${version} is added: contract ${contract}, ${count(migrations, 'migration')}`),
  );
}

async function removeOne(
  session: Session,
  [version = '']: readonly string[],
  { force }: z.output<typeof removeFlags>,
): Promise<void> {
  await rejectInUse(session, version, 'removed', force);
  await removeEngine(await findHome(session.place), version);
  session.out.answer({ version, removed: true }, () => session.out.line(`engine ${version} is removed`));
}

async function listAll(session: Session): Promise<void> {
  const running = { version: packageVersion, contract: contractNumber };
  const folder = enginesFolder(await findHome(session.place));
  const installed = await listEngines(running, folder);
  const engines = await tryEngines(installed, folder, { checks: new LoadChecks(), waitMs: maxTrialMs });
  const users = await fetchUsers(session).catch((error: unknown) => {
    session.out.note(
      `the tenants of each version are not known: ${error instanceof Error ? error.message : String(error)}`,
    );
  });
  const shown = [...engines, ...missingEngines(engines, users?.keys() ?? [])]
    .sort((a, b) => compareVersions(b.version, a.version))
    .map((each) => ({ ...each, tenants: users ? (users.get(each.version) ?? []) : null }));
  session.out.answer(shown, () => {
    session.out.table(
      [
        { title: 'VERSION' },
        { title: 'CONTRACT', align: 'right' },
        { title: 'STATE', flexible: true },
        { title: 'TENANTS', flexible: true },
      ],
      shown.map((each) => [
        each.version,
        each.contract,
        stateOf(each),
        each.tenants === null ? '?' : each.tenants.join(', ') || null,
      ]),
    );
  });
}

/** Versions of tenants that are not installed here. */
function missingEngines(engines: readonly TriedEngine[], used: Iterable<string>): TriedEngine[] {
  const here = new Set(engines.map(({ version }) => version));
  return [...used]
    .filter((version) => !here.has(version))
    .map((version) => ({ version, contract: null, fault: 'not installed here', loads: null, running: false }));
}

function stateOf({ fault, running, loads }: TriedEngine): string {
  if (fault !== null) return fault;
  if (loads === null) return 'unknown: its code has not loaded yet';
  return running ? 'usable; this release' : 'usable';
}

/** The tenants of each version, as the launcher last recorded them. */
async function fetchUsers(session: Session): Promise<Map<string, string[]>> {
  const server = await session.connect();
  const users = new Map<string, string[]>();
  for (const { name, version } of await listTenants(server))
    if (version !== null) users.set(version, [...(users.get(version) ?? []), name]);
  return users;
}

/** Reads the versions from the databases, because the recorded list may be a minute old. */
async function rejectInUse(session: Session, version: string, what: string, force: boolean): Promise<void> {
  try {
    const server = await session.connect();
    const { tenants, unknown } = await listEngineUsers(server, version).catch(noUsersIfUnknown);
    if (tenants.length > 0 && !(force && what === 'replaced'))
      throw new MillraceError(
        'conflict',
        `engine ${version} is used by ${count(tenants.length, 'tenant')} (${formatNames(tenants)}) and is not ${what}; ${what === 'replaced' ? 'upgrade them first, or replace it with --force if it is broken' : 'upgrade them first'}`,
      );
    if (unknown.length > 0)
      throw new MillraceError(
        'unreachable',
        `the version of ${count(unknown.length, 'tenant')} (${formatNames(unknown)}) is not known`,
      );
  } catch (error) {
    if (!(error instanceof MillraceError) || error.code !== 'unreachable') throw error;
    if (force) return;
    const unknown = `it is not known whether a tenant uses engine ${version}: ${error.message}`;
    throw new MillraceError('unreachable', `${unknown}. With --force it is ${what} anyway`, { cause: error });
  }
}

/** A server with another home may not know this version. Then no tenant of it uses the version. */
function noUsersIfUnknown(error: unknown): { tenants: string[]; unknown: string[] } {
  if (error instanceof CallFailed && error.problem?.code === 'not_found') return { tenants: [], unknown: [] };
  throw error;
}

function formatNames(tenants: readonly string[]): string {
  return `${tenants.slice(0, 5).join(', ')}${tenants.length > 5 ? ', …' : ''}`;
}
