/**
 * Output of a benchmark: progress on standard error, a readable report on standard output, and with `--json` one object
 * as the last line. `--append` adds the report to docs/benchmarks/results.md.
 */
import { appendFile } from 'node:fs/promises';
import { packageFile } from '../src/kernel/process/package-files.ts';
import { type Column, renderTable, type Row } from '../src/cli/print/table.ts';
import { describeMachine, type Machine } from './machine.ts';
import type { Percentiles } from './percentiles.ts';

/** A goal from design §12 or of our own (docs/benchmarks/method.md says which), and the measured value. */
export interface Aim {
  readonly what: string;
  readonly aim: string;
  readonly measured: string;
  readonly met: boolean;
}

export interface Result {
  /** Runs per second of the worst workload, of PostgreSQL alone in the same benchmark, and their ratio. */
  readonly rate: number | null;
  readonly raw: number | null;
  readonly ratio: number | null;
  /** Milliseconds, by the name of what was timed. */
  readonly percentiles: Readonly<Record<string, Percentiles>>;
  readonly aims: readonly Aim[];
  /** Further data of this benchmark, for `--json`. */
  readonly details: unknown;
}

/** One of several parts of a benchmark. */
export interface PartResult {
  readonly aims: readonly Aim[];
  readonly percentiles?: Readonly<Record<string, Percentiles>>;
  readonly details: unknown;
  readonly rates?: { readonly rate: number; readonly raw: number };
}

/** The rates are those of the first part that has some. */
export function combine(results: readonly (readonly [string, PartResult])[]): Result {
  const rates = results.find(([, result]) => result.rates !== undefined)?.[1].rates;
  return {
    rate: rates?.rate ?? null,
    raw: rates?.raw ?? null,
    ratio: rates === undefined ? null : rates.rate / rates.raw,
    percentiles: Object.assign({}, ...results.map(([, result]) => result.percentiles ?? {})) as Result['percentiles'],
    aims: results.flatMap(([, result]) => result.aims),
    details: Object.fromEntries(results.map(([name, { details }]) => [name, details])),
  };
}

export class Report {
  readonly #lines: string[] = [];

  /** Prints what is being done; not part of the report. */
  progress(line: string): void {
    process.stderr.write(`${(performance.now() / 1_000).toFixed(1).padStart(6)} s  ${line}\n`);
  }

  line(text = ''): void {
    this.#lines.push(text);
    process.stdout.write(`${text}\n`);
  }

  /** The first column is text, the others are figures. */
  table(titles: readonly string[], rows: readonly Row[]): void {
    const columns: Column[] = titles.map((title, i) => ({ title, align: i === 0 ? 'left' : 'right' }));
    for (const line of renderTable(columns, rows, { width: undefined, paint: (_, text) => text })) this.line(line);
    this.line();
  }

  aims(aims: readonly Aim[]): void {
    this.table(
      ['aim', 'wanted', 'measured', ''],
      aims.map(({ what, aim, measured, met }) => [what, aim, measured, met ? 'met' : 'NOT MET']),
    );
  }

  async append(title: string, machine: Machine): Promise<void> {
    const text = `\n### ${machine.date}: ${title}\n\n${describeMachine(machine)}\n\n\`\`\`\n${this.#lines.join('\n').trim()}\n\`\`\`\n`;
    await appendFile(packageFile('docs', 'benchmarks', 'results.md'), text);
  }
}

type Bound = { readonly below: number } | { readonly atMost: number } | { readonly atLeast: number };

export function aim(what: string, measured: number, bound: Bound, unit: string): Aim {
  const formatted = `${figure(measured)}${unit}`;
  if ('atMost' in bound)
    return { what, aim: `≤ ${bound.atMost}${unit}`, measured: formatted, met: measured <= bound.atMost };
  return 'below' in bound
    ? { what, aim: `< ${bound.below}${unit}`, measured: formatted, met: measured < bound.below }
    : { what, aim: `≥ ${bound.atLeast}${unit}`, measured: formatted, met: measured >= bound.atLeast };
}

/** Rounds to three significant digits; such figures are not more precise. `-`: there is no figure. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '-';
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en-US');
  return Number(value.toPrecision(3)).toString();
}
