/** One line about a step, of what its document says: the name of a task, the condition of an `if`, the time of a `wait`. */
import { isRecord } from '../../kernel/text/path.ts';
import type { Verb } from './step.ts';

const maxChars = 120;

/** `data` is the step as the document has it. */
export function titleOf(verb: Verb, data: Readonly<Record<string, unknown>>): string {
  const text = titleIn(verb, data).replaceAll(/\s+/g, ' ').trim();
  return text.length <= maxChars ? text : `${text.slice(0, maxChars)}…`;
}

function titleIn(verb: Verb, data: Readonly<Record<string, unknown>>): string {
  const value = data[verb];
  switch (verb) {
    case 'sequence':
      return '';
    case 'parallel':
      return data['expect'] === undefined ? '' : `the first ${show(data['expect'])}`;
    case 'loop':
      return listed(data, ['while', 'until', 'every', 'max']);
    case 'wait':
      return isRecord(value) ? waitTitle(value) : show(value);
    case 'on':
      return eventTitle(value);
    case 'set':
      return isRecord(value) ? Object.keys(value).join(', ') : '';
    case 'fail':
      return isRecord(value) ? show(value['code'] ?? 'failed') : show(value);
    case 'break':
    case 'continue':
      return value === true ? '' : show(value);
    case 'if':
    case 'switch':
    case 'each':
    case 'task':
    case 'call':
    case 'signal':
    case 'cancel':
      return show(value);
    default:
      return verb satisfies never;
  }
}

function show(value: unknown): string {
  return typeof value === 'string'
    ? value.slice(0, 2 * maxChars)
    : (JSON.stringify(value) ?? '').slice(0, 2 * maxChars);
}

function listed(data: Readonly<Record<string, unknown>>, keys: readonly string[]): string {
  return keys.flatMap((key) => (data[key] === undefined ? [] : [`${key} ${show(data[key])}`])).join(', ');
}

function waitTitle(wait: Readonly<Record<string, unknown>>): string {
  const { on } = wait;
  const events = on === undefined ? [] : Array.isArray(on) ? on : [on];
  const first = [...events.slice(0, 3).map(eventTitle), ...(wait['for'] === undefined ? [] : [show(wait['for'])])];
  return [...first, ...(wait['until'] === undefined ? [] : [`until ${show(wait['until'])}`])].join(' or ');
}

function eventTitle(event: unknown): string {
  return isRecord(event) ? listed(event, ['signal', 'entered', 'left', 'every', 'cron']) : '';
}
