/** Rewrites the faults of a request in terms of the arguments and flags that the user typed. */
import type { Fault } from '../../errors.ts';
import { CallFailed } from '../../http/client.ts';

/** `names`: the argument behind each path of a fault, such as `body.name`. A path below it, such as `body.name[0]`, keeps its end. */
export function byArgument<T>(call: Promise<T>, names: Readonly<Record<string, string>>): Promise<T> {
  return call.catch((error: unknown) => {
    throw error instanceof CallFailed ? renameFaults(error, names) : error;
  });
}

function renameFaults(error: CallFailed, names: Readonly<Record<string, string>>): CallFailed {
  const { status, problem } = error;
  if (problem?.faults === undefined) return error;
  const named = (fault: Fault): Fault => ({ ...fault, path: renamePath(fault.path, names) });
  const detail = problem.faults.reduce(
    (text, fault) => text.replace(formatFault(fault), () => formatFault(named(fault))),
    problem.detail,
  );
  return new CallFailed(status, { ...problem, detail, faults: problem.faults.map(named) }, error.message);
}

function renamePath(path: string, names: Readonly<Record<string, string>>): string {
  const known = Object.keys(names).find(
    (name) => path === name || (/^[.[]/.test(path.slice(name.length)) && path.startsWith(name)),
  );
  return known === undefined ? path : `${names[known]}${path.slice(known.length)}`;
}

function formatFault({ path, message }: Fault): string {
  return `${path}: ${message}`;
}
