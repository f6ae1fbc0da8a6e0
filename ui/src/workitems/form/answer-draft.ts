/**
 * The answer to a form as a person enters it: a text for each field. The server checks the answer again.
 *
 * 1. An optional field that is left empty stays out of the answer, but an empty text is a text: what follows in the flow may read it.
 * 2. Yes or no is always to be chosen: a person who overlooks the question has not answered it.
 */
import { isObject } from '../../kit/json/json-text.ts';

export interface FormField {
  readonly name: string;
  readonly type: 'boolean' | 'text' | 'number' | 'integer' | 'date' | 'choice';
  readonly label: string;
  readonly required: boolean;
  /** Texts or numbers. */
  readonly choices: readonly unknown[];
  readonly default?: unknown;
}

/** By the name of the field. A boolean is `true`, `false`, or empty while nothing is chosen. */
export type AnswerDraft = Readonly<Record<string, string>>;

export type ReadAnswer =
  | { readonly ok: true; readonly answer: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly faults: Readonly<Record<string, string>> };

export function startDraft(fields: readonly FormField[]): AnswerDraft {
  return Object.fromEntries(fields.map(({ name, default: value }) => [name, textOf(value)]));
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

export function isRequired({ type, required }: FormField): boolean {
  return required || type === 'boolean';
}

export function readAnswer(fields: readonly FormField[], draft: AnswerDraft): ReadAnswer {
  const answer: Record<string, unknown> = {};
  const faults: Record<string, string> = {};
  for (const field of fields) {
    const text = draft[field.name] ?? '';
    if (text.trim() === '') {
      if (isRequired(field)) faults[field.name] = missing[field.type];
      else if (field.type === 'text') answer[field.name] = '';
      continue;
    }
    const value = readers[field.type](text, field);
    if (value === undefined) faults[field.name] = wrong[field.type];
    else answer[field.name] = value;
  }
  return Object.keys(faults).length === 0 ? { ok: true, answer } : { ok: false, faults };
}

const missing: Readonly<Record<FormField['type'], string>> = {
  boolean: 'Choose yes or no',
  text: 'Enter a text',
  number: 'Enter a number',
  integer: 'Enter a whole number',
  date: 'Enter a date',
  choice: 'Choose one',
};

const wrong: Readonly<Record<FormField['type'], string>> = {
  ...missing,
  number: 'Enter a number such as 12.5',
  integer: 'Enter a whole number such as 12',
  date: 'Enter a date such as 2026-01-31',
};

type Reader = (text: string, field: FormField) => unknown;

const readers: Readonly<Record<FormField['type'], Reader>> = {
  boolean: (text) => ({ true: true, false: false })[text],
  text: (text) => text,
  number: (text) => readNumber(text),
  integer: (text) => {
    const number = readNumber(text);
    return Number.isSafeInteger(number) ? number : undefined;
  },
  date: (text) => (isDate(text.trim()) ? text.trim() : undefined),
  choice: (text, { choices }) => choices.find((choice) => String(choice) === text),
};

function readNumber(text: string): number | undefined {
  if (!/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text.trim())) return undefined;
  const number = Number(text);
  return Number.isFinite(number) ? number : undefined;
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const ms = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

/** Faults that the server has found, by field: it names them `body.comment`. Others are under an empty name. */
export function faultsByField(
  fields: readonly FormField[],
  faults: readonly { readonly path: string; readonly message: string }[],
): Readonly<Record<string, string>> {
  const names = new Set(fields.map(({ name }) => name));
  return Object.fromEntries(
    faults.map(({ path, message }) => {
      const name = path.replace(/^body\.?/, '').replace(/^\["(.*)"\]$/, '$1');
      return names.has(name) ? [name, message] : ['', path === '' ? message : `${path} ${message}`];
    }),
  );
}

/** A name as people read it: `first_day` becomes `First day`. */
export function titleOfName(name: string): string {
  const words = name.replaceAll('_', ' ').trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const shorthands: ReadonlySet<unknown> = new Set(['boolean', 'text', 'number', 'integer', 'date']);

/** The fields of a form, which may be written in the short forms of documents: `{approved: boolean, kind: [a, b]}`. */
export function fieldsOf(form: unknown): FormField[] {
  if (Array.isArray(form)) return form as FormField[];
  if (!isObject(form)) return [];
  return Object.entries(form).map(([name, field]) => expand(name, field));
}

function expand(name: string, field: unknown): FormField {
  const given: Readonly<Record<string, unknown>> = isObject(field)
    ? field
    : { [Array.isArray(field) ? 'choices' : 'type']: field };
  const { type, label, required, choices } = given;
  const hasChoices = Array.isArray(choices);
  return {
    name,
    type: hasChoices ? 'choice' : shorthands.has(type) ? (type as FormField['type']) : 'text',
    label: typeof label === 'string' ? label : name,
    required: required === true,
    choices: hasChoices ? (choices as unknown[]) : [],
    ...('default' in given && { default: given['default'] }),
  };
}
