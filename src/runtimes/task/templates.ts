/**
 * Templates: `{{instant}}`, `{{params.x}}` and the like, expanded in a task's strings when a run starts.
 *
 * Blanks inside the braces are ignored. An unknown placeholder is an error that names it, never an empty string. If a value of a
 * function's input consists of one placeholder only, it keeps its JSON type. `{{{{` stands for `{{` itself. Texts of a node are
 * not expanded: its flow has computed them from data. The time is linear in the texts and params: each placeholder is looked up
 * and formatted once, however often it occurs. The placeholders of one run add a limited number of characters.
 */
import {
  isPlaceholderName,
  meansNothing,
  onlyPlaceholder,
  paramPrefix,
  type PlaceholderName,
  quotePlaceholder,
  scanPlaceholders,
} from '../../contract/placeholders.ts';
import type { Texts } from '../work.ts';
import type { RunFacts, TaskFacts } from './facts.ts';

/** A placeholder could not be expanded; the message is the run's reason. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
}

const simple: Readonly<Record<PlaceholderName, (facts: TaskFacts) => unknown>> = {
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

/** The number of characters that placeholders may add to one run, in all of its texts together. */
export const longestExpansion = 1024 * 1024;

/** The value of a placeholder and its text form, or the error. */
type Meaning = { readonly value: unknown; readonly text: string } | { readonly error: TemplateError };

/** Expands the texts of one run, and counts the characters that placeholders add. */
export class Expansion implements Texts {
  readonly facts: RunFacts;
  readonly #ofTask: TaskFacts | undefined;
  readonly #meanings = new Map<string, Meaning>();
  /** The first names of the params, for error messages. */
  #given: string | undefined;
  #left = longestExpansion;

  constructor(facts: RunFacts) {
    this.facts = facts;
    this.#ofTask = facts.node === null ? facts : undefined;
  }

  text(text: string): string {
    if (this.#ofTask === undefined) return text;
    const pieces: string[] = [];
    let end = 0;
    for (const found of scanPlaceholders(text)) {
      pieces.push(text.slice(end, found.start), found.name === undefined ? '{{' : this.#inText(found.name));
      end = found.end;
    }
    return end === 0 ? text : pieces.join('') + text.slice(end);
  }

  /** Expands every string inside a JSON value; keys stay as they are. */
  value(value: unknown): unknown {
    if (this.#ofTask === undefined) return value;
    if (typeof value === 'string') {
      const name = onlyPlaceholder(value);
      return name === undefined ? this.text(value) : this.#asValue(name);
    }
    if (Array.isArray(value)) return value.map((item) => this.value(item));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.value(item)]));
  }

  #inText(name: string): string {
    const { text } = this.#lookUp(name);
    this.#spend(text.length, name);
    return text;
  }

  #asValue(name: string): unknown {
    const { value, text } = this.#lookUp(name);
    this.#spend(text.length, name);
    return value;
  }

  #lookUp(name: string): Exclude<Meaning, { error: TemplateError }> {
    const meaning = this.#meanings.get(name) ?? this.#findMeaning(name);
    this.#meanings.set(name, meaning);
    if ('error' in meaning) throw meaning.error;
    return meaning;
  }

  #findMeaning(name: string): Meaning {
    try {
      const value = this.#ofTask === undefined ? undefined : this.#valueOf(name, this.#ofTask);
      return { value, text: inText(value) };
    } catch (error) {
      if (error instanceof TemplateError) return { error };
      throw error;
    }
  }

  #valueOf(name: string, facts: TaskFacts): unknown {
    if (isPlaceholderName(name)) return simple[name](facts);
    if (!name.startsWith(paramPrefix)) throw new TemplateError(`the placeholder ${meansNothing(name)}`);
    const found = findParam(name.slice(paramPrefix.length), facts.params);
    if (found !== undefined) return found.value;
    this.#given ??= listGiven(facts.params);
    throw new TemplateError(`the placeholder ${quotePlaceholder(name)} has no value: the run was given ${this.#given}`);
  }

  #spend(characters: number, name: string): void {
    this.#left -= characters;
    if (this.#left >= 0) return;
    throw new TemplateError(
      `its placeholders expand to more than ${longestExpansion} characters; ${quotePlaceholder(name)} is the first that does not fit`,
    );
  }
}

/** Finds a param by its whole name, or step by step inside an object. Undefined: there is none. */
function findParam(path: string, params: RunFacts['params']): { readonly value: unknown } | undefined {
  if (Object.hasOwn(params, path)) return { value: params[path] };
  let value: unknown = params;
  for (const part of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = Reflect.get(value, part);
  }
  return { value };
}

const maxListed = 20;

function listGiven(params: RunFacts['params']): string {
  const names = Object.keys(params);
  if (names.length === 0) return 'no parameters';
  return `only ${names.slice(0, maxListed).join(', ')}${names.length > maxListed ? ', …' : ''}`;
}

function inText(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === null ? '' : JSON.stringify(value);
}
