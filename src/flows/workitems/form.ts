/**
 * Forms of human tasks: the fields of an answer, as the author of a flow wrote them.
 *
 * 1. `findFormFaults` lists every fault of a form. Texts with an expression are left out: they are checked when a step begins.
 * 2. `checkAnswer` lists every fault of an answer, or completes the answer with the defaults of fields that it leaves out.
 */
import type { Fault } from '../../errors.ts';
import { formatPath, type PathPart } from '../../kernel/text/path.ts';
import { didYouMean } from '../../kernel/text/suggest.ts';
import { hasExpression } from '../expression/expression.ts';
import { isList, isObject, type Json, type JsonObject, memberOf } from '../json.ts';

const fieldTypes = ['boolean', 'text', 'number', 'integer', 'date'] as const;
type FieldType = (typeof fieldTypes)[number];

/** A field after its short forms were expanded. */
interface Field {
  /** Null: any of the choices. */
  readonly type: FieldType | null;
  readonly isRequired: boolean;
  readonly choices: readonly Json[] | null;
  readonly standard: Json | undefined;
}

export type CheckedAnswer =
  | { readonly ok: true; readonly answer: Json }
  | { readonly ok: false; readonly faults: readonly Fault[] };

/** `unknown`: fields of an answer that are reported though the form lacks them. The search for a suggestion takes 0.6 ms for each. */
export const formLimits = { fields: 100, choices: 1_000, unknown: 50 } as const;

const namePattern = /^[A-Za-z_]\w{0,99}$/;
const members = ['type', 'label', 'required', 'choices', 'default'] as const;
const typeList = fieldTypes.join(', ');

/** Every fault of a form. Paths begin inside the form: `approved.type`. */
export function findFormFaults(form: Json): Fault[] {
  if (isExpression(form)) return [];
  if (!isObject(form)) return [fault([], 'must be a mapping of fields, such as {approved: boolean, comment: text}')];
  const entries = Object.entries(form);
  if (entries.length > formLimits.fields)
    return [fault([], `has more than ${formLimits.fields} fields; split the task`)];
  return entries.flatMap(([name, field]) => [...findNameFaults(name), ...findFieldFaults(name, field)]);
}

/** A field of a form, for those who draw it. */
export interface FormField {
  readonly name: string;
  readonly type: FieldType | 'choice';
  readonly label: string;
  readonly required: boolean;
  readonly choices: readonly Json[];
  /** Left out: there is none. */
  readonly default?: Json;
}

/** The fields of a form in order, short forms written out. */
export function describeForm(form: Json): FormField[] {
  return Object.entries(isObject(form) ? form : {}).map(([name, written]) => {
    const { type, isRequired: required, choices, standard } = fieldOf(written);
    const label = isObject(written) ? memberOf(written, 'label') : undefined;
    return {
      name,
      type: choices === null ? (type ?? 'text') : 'choice',
      label: typeof label === 'string' ? label : name,
      required,
      choices: choices ?? [],
      ...(standard !== undefined && { default: standard }),
    };
  });
}

/** Checks an answer against a form. Without fields, any answer is valid. Paths are those of the answer's fields. */
export function checkAnswer(form: Json, answer: Json): CheckedAnswer {
  const fields = isObject(form) ? Object.entries(form) : [];
  if (fields.length === 0) return { ok: true, answer };
  if (!isObject(answer)) return { ok: false, faults: [fault([], `must be an object with ${namesOf(fields)}`)] };
  const known = new Map(fields.map(([name, field]) => [name, fieldOf(field)]));
  const faults = [
    ...Object.keys(answer)
      .filter((name) => !known.has(name))
      .slice(0, formLimits.unknown)
      .map((name) => unknownField(name, known.keys())),
    ...[...known].flatMap(([name, field]) => findValueFaults(name, field, memberOf(answer, name))),
  ];
  if (faults.length > 0) return { ok: false, faults };
  const complete = [...known].flatMap(([name, { standard }]) => {
    const value = memberOf(answer, name) ?? standard;
    return value === undefined || value === null ? [] : [[name, value] as const];
  });
  return { ok: true, answer: Object.fromEntries(complete) };
}

function findNameFaults(name: string): Fault[] {
  if (namePattern.test(name)) return [];
  return [fault([name], 'must be named with letters, digits and _, beginning with a letter or _')];
}

function findFieldFaults(name: string, field: Json): Fault[] {
  if (isExpression(field)) return [];
  if (typeof field === 'string') return findTypeFaults([name], field);
  if (isList(field)) return findChoiceFaults([name], field, null);
  if (!isObject(field))
    return [fault([name], `must be one of ${typeList}, a list of choices, or a mapping with a type`)];
  const type = memberOf(field, 'type');
  const choices = memberOf(field, 'choices');
  const label = memberOf(field, 'label');
  const required = memberOf(field, 'required');
  const faults = Object.keys(field).flatMap((key) => (isMember(key) ? [] : [unknownMember(name, key)]));
  if (type === undefined && choices === undefined) faults.push(fault([name], `needs a type (${typeList}) or choices`));
  if (type !== undefined && !isExpression(type)) faults.push(...findTypeFaults([name, 'type'], type));
  if (label !== undefined && typeof label !== 'string') faults.push(fault([name, 'label'], 'must be text'));
  if (required !== undefined && typeof required !== 'boolean' && !isExpression(required))
    faults.push(fault([name, 'required'], 'must be true or false'));
  if (choices !== undefined && !isExpression(choices))
    faults.push(...findChoiceFaults([name, 'choices'], choices, isFieldType(type) ? type : null));
  return faults.length > 0 ? faults : findDefaultFaults(name, field);
}

function findTypeFaults(path: readonly PathPart[], type: Json): Fault[] {
  if (isFieldType(type)) return [];
  const hint = typeof type === 'string' ? didYouMean(type, fieldTypes) : '';
  return [fault(path, `must be one of ${typeList}, or a list of choices${hint}`)];
}

function findChoiceFaults(path: readonly PathPart[], choices: Json, type: FieldType | null): Fault[] {
  if (!isList(choices) || choices.length === 0) return [fault(path, 'must be a list of at least one choice')];
  if (choices.length > formLimits.choices) return [fault(path, `has more than ${formLimits.choices} choices`)];
  return choices.flatMap((choice, i) => {
    if (isExpression(choice)) return [];
    if (typeof choice !== 'string' && typeof choice !== 'number')
      return [fault([...path, i], 'must be text or a number')];
    const message = type === null ? undefined : typeFault(type, choice);
    return message === undefined ? [] : [fault([...path, i], message)];
  });
}

function findDefaultFaults(name: string, field: JsonObject): Fault[] {
  const standard = memberOf(field, 'default');
  if (standard === undefined || Object.values(field).some(isExpressionInside)) return [];
  const message = valueFault(fieldOf(field), standard);
  return message === undefined ? [] : [fault([name, 'default'], message)];
}

function findValueFaults(name: string, field: Field, value: Json | undefined): Fault[] {
  if (value === undefined || value === null)
    return field.isRequired && field.standard === undefined ? [fault([name], 'is required')] : [];
  const message = valueFault(field, value);
  return message === undefined ? [] : [fault([name], message)];
}

function valueFault({ type, choices }: Field, value: Json): string | undefined {
  if (choices !== null && !choices.includes(value))
    return `must be one of ${choices
      .slice(0, 20)
      .map((choice) => JSON.stringify(choice))
      .join(', ')}`;
  return type === null ? undefined : typeFault(type, value);
}

function typeFault(type: FieldType, value: Json): string | undefined {
  switch (type) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be true or false';
    case 'text':
      return typeof value === 'string' ? undefined : 'must be text';
    case 'number':
      return typeof value === 'number' ? undefined : 'must be a number';
    case 'integer':
      return Number.isSafeInteger(value) ? undefined : 'must be a whole number';
    case 'date':
      return isDate(value) ? undefined : 'must be a date such as 2030-01-31';
    default:
      return type satisfies never;
  }
}

function isDate(value: Json): boolean {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d$/.test(value)) return false;
  const at = new Date(`${value}T00:00:00Z`);
  // 30 February would become 2 March
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(value);
}

/** A field of a form without faults. */
function fieldOf(field: Json): Field {
  const plain = { isRequired: false, choices: null, standard: undefined };
  if (isFieldType(field)) return { ...plain, type: field };
  if (isList(field)) return { ...plain, type: null, choices: field };
  if (!isObject(field)) return { ...plain, type: 'text' };
  const type = memberOf(field, 'type');
  const choices = memberOf(field, 'choices');
  return {
    type: isFieldType(type) ? type : null,
    isRequired: memberOf(field, 'required') === true,
    choices: isList(choices) ? choices : null,
    standard: memberOf(field, 'default'),
  };
}

function isFieldType(value: Json | undefined): value is FieldType {
  return fieldTypes.some((type) => type === value);
}

function isMember(key: string): boolean {
  return members.some((member) => member === key);
}

function isExpression(value: Json | undefined): boolean {
  return typeof value === 'string' && hasExpression(value);
}

function isExpressionInside(value: Json): boolean {
  return isList(value) ? value.some(isExpression) : isExpression(value);
}

function unknownMember(name: string, key: string): Fault {
  return fault([name, key], `is not a member of a field; it may have ${members.join(', ')}${didYouMean(key, members)}`);
}

function unknownField(name: string, known: Iterable<string>): Fault {
  return fault([name], `is not a field of the form${didYouMean(name, known)}`);
}

function namesOf(fields: readonly (readonly [string, Json])[]): string {
  return fields.map(([name]) => name).join(', ');
}

function fault(path: readonly PathPart[], message: string): Fault {
  return { path: formatPath(path), message };
}
