/**
 * Imports from another product: projects, jobs with the positions of their triggers and the counts of their tokens, stash values, and the start.
 * An imported job is paused until its start, so requests may arrive in any order and more than once.
 */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { maxDescription, projectConfig, projectName } from '../projects/endpoints.ts';
import { outlook } from '../triggers/endpoints.ts';
import { fault, id, instant, priority } from '../shapes.ts';

const count = z
  .int()
  .min(1)
  .max(2 ** 31 - 2);
/** Tokens of one job. A body may have 200,000 values, and each token takes two. */
export const maxTokens = 50_000;
const maxMarks = 1_000;
const maxTasks = 2_000;
export const maxEntries = 1_000;
export const maxJobs = 1_000;
export const maxRetries = 50_000;
const bodyBytes = 10 * 1024 * 1024;

const project = z.strictObject({
  id,
  name: projectName,
  description: z.string().max(maxDescription).default(''),
  config: projectConfig.optional(),
});

const tokensOfTask = z.strictObject({
  task: z.string(),
  instants: z.array(instant).max(maxTokens),
  counts: z.array(count).max(maxTokens).describe('for each of the instants'),
});

function rejectExcess({ value, issues }: z.core.ParsePayload<z.output<typeof tokensOfTask>[]>): void {
  const fail = (message: string): void => void issues.push({ code: 'custom', input: value, message });
  if (value.some(({ instants, counts }) => instants.length !== counts.length)) fail('needs one count for each instant');
  const total = value.reduce((sum, { instants }) => sum + instants.length, 0);
  if (total > maxTokens) fail(`has ${total} tokens, at most ${maxTokens} are allowed`);
}

/** `overwrite`: also what was changed here. */
const how = { dry_run: z.boolean().default(false), overwrite: z.boolean().default(false) };
const entry = z.strictObject({
  project: id.nullish().describe('the stash of this project; without project and job, the global one'),
  job: id.nullish().describe('the stash of this job at `instant`'),
  instant: instant.nullish(),
  name: z.string().min(1).max(200),
  data: z.base64().describe('the plain bytes, in base64'),
});

/** `conflict`: it is left as it is here; `reason` says what would help. */
const outcome = z.enum(['created', 'changed', 'unchanged', 'conflict']);
export type ImportOutcome = z.output<typeof outcome>;

const common = { tag: 'imports', allow: ['operator'], bodyBytes } as const;

export const importEndpoints = endpoints({
  'POST /api/imports/projects': {
    ...common,
    summary: 'Import a project under its id; one that differs here is left alone, unless `overwrite` is given',
    body: z.strictObject({ ...how, project }),
    answer: z.object({
      /** The id here: another one if a project of that name was here before; null if the project was deleted here. */
      id: id.nullable(),
      outcome,
      reason: z.string().nullable(),
    }),
  },
  'POST /api/imports/jobs': {
    ...common,
    summary:
      'Import a job, paused: its document, what its triggers have dealt with, and the counts of its tokens, in one ' +
      'transaction. A job that has run here is left alone',
    body: z.strictObject({
      ...how,
      /** Created if it does not exist. */
      project,
      document: z.string().max(bodyBytes).describe('the job document as JSON, with its uuid'),
      resume: z.boolean().describe('whether the start unpauses it'),
      keep_resume: z.boolean().default(false).describe('an earlier import of the job has said whether to `resume`'),
      outlook: z.boolean().default(false).describe('of a dry run: say what the start would cause'),
      leave_missing: z.boolean().default(false).describe('leave out references to jobs that do not exist yet'),
      triggers: z
        .array(z.strictObject({ name: z.string(), earliest: instant.nullable(), latest: instant.nullable() }))
        .max(maxMarks),
      tokens: z.array(tokensOfTask).max(maxTasks).check(rejectExcess),
    }),
    answer: z.object({
      id,
      outcome,
      reason: z.string().nullable(),
      /** Whether the start will unpause it. */
      resumes: z.boolean(),
      /** How many marks of triggers and how many tokens are written or removed. */
      triggers: z.int(),
      tokens: z.int(),
      /** References that were left out. */
      missing: z.array(fault),
      warnings: z.array(fault),
      outlook: outlook.optional(),
    }),
  },
  'POST /api/imports/stash': {
    ...common,
    summary: 'Import stash values; one that differs here is left alone, unless `overwrite` is given',
    body: z.strictObject({ ...how, entries: z.array(entry).max(maxEntries) }),
    answer: z.object({
      written: z.int(),
      unchanged: z.int(),
      /** Values of jobs that have run here. */
      kept: z.int(),
      /** Positions in `entries` of the values that differ. */
      conflicts: z.array(z.int()),
    }),
  },
  'POST /api/imports/start': {
    ...common,
    summary: 'Start imported jobs, in one transaction: those that are to resume are unpaused; their retries wait again',
    body: z.strictObject({
      jobs: z.array(id).max(maxJobs),
      retries: z
        .array(
          z.strictObject({
            run: id.describe('the run that failed'),
            job: id,
            task: z.string(),
            instant,
            attempt: z
              .int()
              .min(2)
              .max(2 ** 31 - 1)
              .describe('the next attempt'),
            priority,
            due: instant,
          }),
        )
        .max(maxRetries)
        .default([]),
    }),
    answer: z.object({
      /** Jobs that run now, and jobs that stay paused. All others were started before, or are not imported. */
      started: z.array(id),
      paused: z.array(id),
    }),
  },
});
