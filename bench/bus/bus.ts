/**
 * `bench -- bus`: events taken in and delivered by a real `up` with its courier, against what PostgreSQL and Node can do in the
 * same run. Publishers, receivers and the bare server are processes of their own. What is compared takes turns, so that it sees the
 * same machine.
 *
 * *Append* is the same rows written by one connection in groups of 1,000, *bare* a node:http server that appends them the same way,
 * *commit* one durable row. Each part is a file of its own and adds its tables, percentiles and aims.
 */
import type { Options } from '../options.ts';
import { combine, type PartResult, type Report, type Result } from '../report.ts';
import { measureBeside } from './beside.ts';
import { measureBulk } from './bulk.ts';
import { measureIdle } from './idle.ts';
import type { BusPartName } from './part-names.ts';
import { measureSick } from './sick.ts';
import { measureSingle } from './single.ts';
import { measureSnapshot } from './snapshot.ts';
import { type BusStage, setBusStage } from './stage.ts';

/** In this order: the first ones find the emptiest tables. */
const parts: Record<BusPartName, (stage: BusStage, report: Report) => Promise<PartResult>> = {
  bulk: measureBulk,
  single: measureSingle,
  idle: measureIdle,
  sick: measureSick,
  snapshot: measureSnapshot,
  beside: measureBeside,
};

export async function bus(options: Options, report: Report): Promise<Result> {
  const stage = await setBusStage(options);
  const results: [string, PartResult][] = [];
  for (const [name, measure] of Object.entries(parts))
    if (options.part === undefined || options.part === name) results.push([name, await measure(stage, report)]);
  await stage.stop();
  return combine(results);
}
