/**
 * Templates: `{{instant}}`, `{{params.x}}` and the like, expanded in a task's strings when a run starts.
 *
 * Blanks inside the braces do not matter. A placeholder that means nothing is an error which names it, never an empty
 * string. Where a value of a function's input is one placeholder and nothing else, it keeps its JSON type.
 * `{{{{` stands for `{{` itself.
 */
import {
  isPlaceholderName,
  meansNothing,
  paramPrefix,
  placeholder,
  type PlaceholderName,
} from '../contract/placeholders.ts';
import type { RuntimeBlock } from '../contract/wire.ts';
import type { RunFacts, Work } from './contract.ts';

/** Says which placeholder could not be expanded; its message is the run's reason. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
}

const simple: Readonly<Record<PlaceholderName, (facts: RunFacts) => unknown>> = {
  instant: (facts) => facts.instant,
  'instant.date': (facts) => facts.instant.slice(0, 10),
  'instant.unix': (facts) => Math.floor(Date.parse(facts.instant) / 1_000),
  run: (facts) => facts.run,
  attempt: (facts) => facts.attempt,
  priority: (facts) => facts.priority,
  idempotency_key: (facts) => facts.idempotencyKey,
  tenant: (facts) => facts.tenant,
  task: (facts) => facts.task.name,
  'task.id': (facts) => facts.task.id,
  job: (facts) => facts.job.name,
  'job.id': (facts) => facts.job.id,
  project: (facts) => facts.project.name,
  'project.id': (facts) => facts.project.id,
  url: (facts) => facts.url,
  params: (facts) => facts.params,
};

const onlyPlaceholder = /^\{\{\s*([^{}]*?)\s*\}\}$/;

export function expand(text: string, facts: RunFacts): string {
  if (!text.includes('{{')) return text;
  return text.replace(placeholder, (whole, name: string | undefined) =>
    name === undefined ? whole.slice(2) : inText(lookUp(name, facts)),
  );
}

/** Expands every string inside a JSON value; keys stay as they are. */
export function expandValue(value: unknown, facts: RunFacts): unknown {
  if (typeof value === 'string') {
    const [, name] = onlyPlaceholder.exec(value) ?? [];
    return name === undefined ? expand(value, facts) : lookUp(name, facts);
  }
  if (Array.isArray(value)) return value.map((item) => expandValue(item, facts));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, expandValue(item, facts)]));
}

/** A definition's block as a runtime takes it; its environment is expanded where it is put together. */
export function expandBlock(block: RuntimeBlock, facts: RunFacts): Work {
  if (block.kind === 'none') return block;
  if (block.kind === 'function') {
    return { kind: 'function', name: block.name, input: expandValue(block.input, facts) };
  }
  const expanded = (parts: readonly string[]): string[] => parts.map((part) => expand(part, facts));
  if (block.kind === 'docker') return { kind: 'docker', image: block.image, args: expanded(block.args) };
  const cwd = block.cwd === null ? null : expand(block.cwd, facts);
  return { kind: 'process', command: expanded(block.command), cwd };
}

function lookUp(name: string, facts: RunFacts): unknown {
  if (isPlaceholderName(name)) return simple[name](facts);
  if (name.startsWith(paramPrefix)) return param(name, facts);
  throw new TemplateError(`the placeholder ${meansNothing(name)}`);
}

function param(name: string, facts: RunFacts): unknown {
  const path = name.slice(paramPrefix.length);
  if (Object.hasOwn(facts.params, path)) return facts.params[path];
  let value: unknown = facts.params;
  for (const part of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) throw missingParam(name, facts);
    value = Reflect.get(value, part);
  }
  return value;
}

function missingParam(name: string, facts: RunFacts): TemplateError {
  const given = Object.keys(facts.params).join(', ');
  return new TemplateError(
    `the placeholder {{${name}}} has no value: the run was given ${given === '' ? 'no parameters' : `only ${given}`}`,
  );
}

function inText(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === null ? '' : JSON.stringify(value);
}
