/** Sorts jobs for applying: jobs that others refer to come first. */
import { type JobDocument, jobKey } from './documents.ts';

/** Otherwise keeps the given order, also of jobs that refer to each other in a cycle. Does not recurse. */
export function inOrder(documents: readonly JobDocument[]): JobDocument[] {
  const known = new Map(documents.map((document) => [jobKey(document.job), document]));
  const ordered: JobDocument[] = [];
  const entered = new Set<JobDocument>();
  const left = new Set<JobDocument>();
  const stack = documents.toReversed();
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    if (!entered.has(top)) {
      entered.add(top);
      stack.push(...parentsOf(top, known).filter((parent) => !entered.has(parent)));
      continue;
    }
    stack.pop();
    if (!left.has(top)) ordered.push(top);
    left.add(top);
  }
  return ordered;
}

function parentsOf({ job }: JobDocument, known: ReadonlyMap<string, JobDocument>): JobDocument[] {
  const keys = new Set(job.foreignReferences.map(({ reference }) => `${reference.project}/${reference.job}`));
  return [...keys].flatMap((key) => known.get(key) ?? []);
}
