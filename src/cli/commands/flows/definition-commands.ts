/** `millrace flow apply|list|versions|delete`: definitions of flows on the server. */
import type { Command } from 'commander';
import { z } from 'zod';
import { count, showTime } from '../../print/output.ts';
import { collectValues, examples } from '../../session/flags.ts';
import type { Io } from '../../session/io.ts';
import { listFlows } from '../../session/pages.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';

export const flowArgument = ['<name>', 'the name of a flow, as `millrace flow list` prints it'] as const;

const applyFlags = z.object({ file: z.array(z.string()), dryRun: z.boolean().default(false) });

export function addDefinitionCommands(flow: Command, io: Io): void {
  const apply = flow
    .command('apply')
    .description(
      'Create flows from files, or give them a new version. All files are checked first: if one has a fault, nothing is sent. ' +
        'Executions that have begun keep their version.',
    )
    .requiredOption(
      '-f, --file <path>',
      'a file (.json, .yaml, .yml), a folder, or - for stdin; repeatable',
      collectValues,
    )
    .option('--dry-run', 'only show what would change')
    .action(
      verb(io, applyFlags, async (session, _, flags) => (await import('./apply-flows.ts')).applyFlows(session, flags)),
    );
  examples(apply, [
    ['millrace flow apply -f expense.yaml', 'one flow'],
    ['millrace flow apply -f flows/ --dry-run', 'what would change'],
    ['generate | millrace flow apply -f -', 'from another program'],
  ]);
  const list = flow
    .command('list')
    .description('List flows with their newest versions and the executions that have not ended.')
    .action(verb(io, noOptions, showFlows));
  examples(list, [['millrace flow list', 'of the tenant `default`']]);
  const versions = flow
    .command('versions')
    .description('List the versions of a flow: when it was applied, and by whom.')
    .argument(...flowArgument)
    .action(verb(io, noOptions, showVersions));
  examples(versions, [['millrace flow versions expense', 'the newest first']]);
  const remove = flow
    .command('delete')
    .description('Delete a flow: it cannot be started again. Its executions go on.')
    .argument(...flowArgument)
    .option('--yes', 'do not ask')
    .action(verb(io, z.object({ yes: z.boolean().default(false) }), deleteFlow));
  examples(remove, [['millrace flow delete expense --yes', 'in a script']]);
}

async function showFlows(session: Session): Promise<void> {
  const flows = await listFlows(await session.connect());
  session.out.answer(flows, () => {
    if (flows.length === 0) return session.out.note('no flows; `millrace flow apply -f FILE` creates them');
    session.out.table(
      [
        { title: 'FLOW' },
        { title: 'VERSION', align: 'right' },
        { title: 'RUNNING', align: 'right' },
        { title: 'WAITING', align: 'right' },
        { title: 'PAUSED', align: 'right' },
        { title: 'INCIDENT', align: 'right' },
        { title: 'UPDATED' },
        { title: 'DESCRIPTION', flexible: true },
      ],
      flows.map(({ counts, ...flow }) => [
        flow.name,
        flow.version,
        counts.running,
        counts.waiting,
        counts.paused,
        counts.incident === 0 ? 0 : { text: String(counts.incident), style: 'red' },
        showTime(flow.updated_at),
        flow.description,
      ]),
    );
  });
}

async function showVersions(session: Session, [name = '']: readonly string[]): Promise<void> {
  const server = await session.connect();
  const { versions } = await server.tenant('GET /api/flows/{name}', { params: { name } });
  session.out.answer(versions, () =>
    session.out.table(
      [{ title: 'VERSION', align: 'right' }, { title: 'APPLIED' }, { title: 'BY', flexible: true }],
      versions.map(({ version, at, actor }) => [version, showTime(at), actor]),
    ),
  );
}

async function deleteFlow(session: Session, [name = '']: readonly string[], { yes }: { yes: boolean }): Promise<void> {
  const server = await session.connect();
  const { items } = await server.tenant('GET /api/executions', {
    query: { flow: name, status: 'running,waiting,paused,incident', limit: 1_000 },
  });
  const live = items.length === 1_000 ? '1,000 or more executions' : count(items.length, 'execution');
  await session.confirm(`Delete the flow ${name}? ${live} under way will go on.`, yes);
  await server.tenant('DELETE /api/flows/{name}', { params: { name } });
  session.out.answer({ name, deleted: true }, () => session.out.line(`${name} is deleted`));
}
