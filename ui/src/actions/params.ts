/**
 * Parameters as a user enters them. If the document's value is a string, the input is taken as a string. Otherwise it is
 * parsed as JSON, so that a number stays a number.
 */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
type Values = Readonly<Record<string, Json>>;

export interface ParamsDraft {
  /** Input by name, for parameters that the document defines. */
  readonly known: Readonly<Record<string, string>>;
  /** An object as JSON; may be empty. */
  readonly others: string;
}

/** The `params` of a job's document, which is JSON. */
export function paramsOf(document: string): Values {
  const parsed = JSON.parse(document) as { readonly params?: Values };
  return parsed.params ?? {};
}

export function draftOf(standard: Values): ParamsDraft {
  const known = Object.entries(standard).map(([name, value]) => [name, formatValue(value)] as const);
  return { known: Object.fromEntries(known), others: '' };
}

function formatValue(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

export function faultOf(text: string, kind: 'object' | 'any' = 'object'): string | undefined {
  if (kind === 'object' && text.trim() === '') return undefined;
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return kind === 'any' || isObject ? undefined : 'Enter an object, such as {"region": "north"}';
  } catch {
    return kind === 'any' ? 'Not valid JSON; put text in "quotes"' : 'Not valid JSON';
  }
}

/** Returns the parameters that differ from the document, or undefined while some input is not valid JSON. */
export function paramsToSend(standard: Values, draft: ParamsDraft): Values | undefined {
  try {
    const known = Object.entries(standard).flatMap(([name, value]) => {
      const text = draft.known[name] ?? formatValue(value);
      if (text === formatValue(value)) return [];
      return [[name, typeof value === 'string' ? text : (JSON.parse(text) as Json)] as const];
    });
    if (faultOf(draft.others) !== undefined) return undefined;
    const others = draft.others.trim() === '' ? {} : (JSON.parse(draft.others) as Values);
    return { ...Object.fromEntries(known), ...others };
  } catch {
    return undefined;
  }
}
