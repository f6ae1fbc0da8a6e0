/** `millrace pool`: limits that tasks of several jobs share. */
import type { Command } from 'commander';
import { examples, integer } from '../../session/flags.ts';
import { UsageError } from '../../session/exit.ts';
import type { Io } from '../../session/io.ts';
import { count } from '../../print/output.ts';
import { listPools } from '../../session/pages.ts';
import { noOptions, type Session, verb } from '../../session/session.ts';

const nameArgument = ['<name>', 'as tasks name it: `pool: NAME`'] as const;
const maxPlaces = 1_000_000;

export function addPoolCommands(program: Command, io: Io): void {
  const pool = program.command('pool').description('Share places between tasks of several jobs.');
  const list = pool.command('list').description('List pools: their places, how many are used, and how many runs wait.');
  list.action(verb(io, noOptions, showPools));
  examples(list, [['millrace pool list', 'with the number of waiting runs']]);
  const set = pool
    .command('set')
    .description('Create a pool or change its places. Waiting runs start at once if there is room.')
    .argument(...nameArgument)
    .argument('<places>', 'maximum runs at a time; 0: none')
    .action(verb(io, noOptions, setPool));
  examples(set, [
    ['millrace pool set warehouse 4', 'at most four runs at a time'],
    ['millrace pool set warehouse 0', 'no run that needs it starts'],
  ]);
  const remove = pool
    .command('delete')
    .description('Delete a pool that no task names.')
    .argument(...nameArgument);
  remove.action(verb(io, noOptions, deletePool));
  examples(remove, [['millrace pool delete warehouse', 'once no job file names it']]);
}

async function showPools(session: Session): Promise<void> {
  const pools = await listPools(await session.connect());
  session.out.answer(pools, () => {
    if (pools.length === 0)
      return session.out.note('no pools; applying a task with `pool: NAME` creates one, or `millrace pool set`');
    session.out.table(
      [
        { title: 'POOL', flexible: true },
        { title: 'PLACES', align: 'right' },
        { title: 'USED', align: 'right' },
        { title: 'WAITING', align: 'right' },
      ],
      pools.map((pool) => [pool.name, pool.places, pool.used, pool.waiting]),
    );
  });
}

async function setPool(session: Session, [name = '', text = '']: readonly string[]): Promise<void> {
  const places = readPlaces(text);
  const server = await session.connect();
  const pool = await server.tenant('PUT /api/pools/{name}', { params: { name }, body: { places } });
  session.out.answer(pool, () => session.out.line(`${name} has ${count(pool.places, 'place')}`));
}

function readPlaces(text: string): number {
  try {
    return integer(0, maxPlaces)(text);
  } catch (error) {
    throw new UsageError(`the places ${JSON.stringify(text)} must be a whole number up to ${maxPlaces}`, {
      cause: error,
    });
  }
}

async function deletePool(session: Session, [name = '']: readonly string[]): Promise<void> {
  const server = await session.connect();
  await server.tenant('DELETE /api/pools/{name}', { params: { name } });
  session.out.answer({ name, deleted: true }, () => session.out.line(`${name} is deleted`));
}
