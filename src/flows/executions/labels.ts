/** Labels of an execution: values by which people search, evaluated from the input when it is launched. */
import { isObject, type Json } from '../json.ts';
import { Fuel } from '../expression/values.ts';
import { flowLimits } from '../interpreter/run.ts';
import type { Flow } from '../language/step.ts';

/** Characters of a label's value. Searching compares as many. */
const maxLabelChars = 200;

export function labelText(value: string): string {
  return value.slice(0, maxLabelChars);
}

/** A label that cannot be evaluated, or that is null, is left out: it must not keep the execution from starting. */
export function evaluateLabels(
  flow: Flow,
  input: Json,
  { id, key, nowMs }: { readonly id: string; readonly key: string | null; readonly nowMs: number },
): (readonly [string, string])[] {
  const values: Readonly<Record<string, Json | Date>> = {
    input,
    f: isObject(input) ? input : {},
    v: {},
    execution: { id, key },
    now: new Date(nowMs),
  };
  const scope = { lookup: (name: string) => values[name] ?? null };
  // of all of them together, as of the expressions of a step
  const fuel = new Fuel(flowLimits.fuelUnits);
  return Object.entries(flow.labels).flatMap(([name, compiled]) => {
    try {
      const value = compiled.evaluate(scope, fuel);
      if (value === null) return [];
      return [[name, labelText(typeof value === 'string' ? value : JSON.stringify(value))] as const];
    } catch {
      return [];
    }
  });
}
