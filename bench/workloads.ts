/** The shapes of jobs that `bench -- dag` runs. Their triggers start in the year 9000; the benchmark fires them itself. */

export const workloadNames = ['chain', 'fan', 'indep'] as const;
export type WorkloadName = (typeof workloadNames)[number];

export interface Workload {
  readonly name: WorkloadName;
  readonly title: string;
  readonly documents: readonly object[];
  /** Runs of one job for one instant. */
  readonly runsPerFiring: number;
}

const never = '9000-01-01T00:00:00Z';
const trigger = { name: 'start', start: never, period: '1 hour' };
export const triggered = { depends: ['trigger/start'] };

/** `quick` makes fewer jobs, because applying a thousand takes longer than all the rest. */
export function makeWorkloads(quick: boolean): readonly Workload[] {
  const make = (name: WorkloadName, count: number, shape: string, tasks: readonly object[]): Workload => {
    const documents = jobs(quick ? 10 : count, tasks);
    const title = `${documents.length.toLocaleString('en-US')} jobs, ${shape} each`;
    return { name, title, documents, runsPerFiring: tasks.length };
  };
  return [
    make('chain', 200, '10 tasks in a row', chain(10)),
    make('fan', 20, '1 → 100 → 1 tasks', fan(100)),
    make('indep', 1_000, 'one task', chain(1)),
  ];
}

function jobs(count: number, tasks: readonly object[]): object[] {
  return numbers(count).map((i) => ({ name: `job ${i}`, triggers: [trigger], tasks }));
}

/** A job of `length` tasks in a row. */
export function chainOf(length: number): { readonly triggers: readonly object[]; readonly tasks: readonly object[] } {
  return { triggers: [trigger], tasks: chain(length) };
}

/** A job of one task, `width` tasks after it, and one after these. */
export function fanOf(width: number): { readonly triggers: readonly object[]; readonly tasks: readonly object[] } {
  return { triggers: [trigger], tasks: fan(width) };
}

function chain(length: number): object[] {
  return numbers(length).map((i) =>
    i === 0 ? { name: 'task 0', ...triggered } : { name: `task ${i}`, depends: [`task/task ${i - 1}`] },
  );
}

function fan(width: number): object[] {
  const middle = numbers(width).map((i) => ({ name: `middle ${i}`, depends: ['task/first'] }));
  return [
    { name: 'first', ...triggered },
    ...middle,
    { name: 'last', depends: numbers(width).map((i) => `task/middle ${i}`) },
  ];
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}
