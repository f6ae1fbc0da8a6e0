/** Work items: tasks of people that wait for an answer. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { maxLaunchBytes } from '../executions/launch/endpoints.ts';
import { outcome, pageOf, pageQuery } from '../executions/shapes.ts';
import { flag, id, idPath, time } from '../shapes.ts';

const person = z.string().min(1).max(200);

/** A field of a form as it is shown: short forms such as `boolean` are written out. */
const formField = z.object({
  name: z.string(),
  type: z.enum(['boolean', 'text', 'number', 'integer', 'date', 'choice']),
  label: z.string(),
  required: z.boolean(),
  choices: z.array(z.union([z.string(), z.number()])).describe('of `choice`'),
  default: z.unknown().optional(),
});

const workitem = z.object({
  id,
  execution: id,
  flow: z.string(),
  node: z.string(),
  /** Of the task. */
  name: z.string(),
  title: z.string(),
  assignee: z.string().nullable(),
  team: z.string().nullable(),
  form: z.array(formField),
  due_at: time.nullable(),
  claimed_by: z.string().nullable(),
  claimed_until: time.nullable(),
  created_at: time,
});
const workitemDetail = workitem.extend({ input: z.unknown().describe('what the flow gives to the person') });

const ended = { 404: 'there never was such a work item', 410: 'it was answered, or its step has ended' } as const;

export const workitemEndpoints = endpoints({
  'GET /api/workitems': {
    summary: 'Open work items, oldest first',
    tag: 'workitems',
    allow: ['viewer', 'operator'],
    query: z.object({
      assignee: person.optional(),
      team: person.optional(),
      execution: id.optional(),
      mine: flag.describe('only those that are assigned to the caller, or that the caller has claimed'),
      ...pageQuery,
    }),
    answer: pageOf(workitem).extend({ total: z.int().describe('open work items of everybody, counted up to 1,000') }),
  },
  'GET /api/workitems/{id}': {
    summary: 'A work item with its input and the form of its answer',
    tag: 'workitems',
    allow: ['viewer', 'operator'],
    params: idPath,
    answer: workitemDetail,
    others: ended,
  },
  'POST /api/workitems/{id}/claim': {
    summary: 'Claim a work item, so that others see that somebody is at it',
    tag: 'workitems',
    allow: ['operator'],
    params: idPath,
    body: z
      .strictObject({
        seconds: z.int().min(1).max(604_800).default(3_600).describe('how long'),
        for: person.optional().describe('in the name of this person; without it, the caller'),
      })
      .default({ seconds: 3_600 }),
    answer: workitemDetail,
    others: { ...ended, 409: 'somebody else has claimed it' },
  },
  'POST /api/workitems/{id}/release': {
    summary: 'Give a claimed work item back',
    tag: 'workitems',
    allow: ['operator'],
    params: idPath,
    answer: workitemDetail,
    others: ended,
  },
  'POST /api/workitems/{id}/answer': {
    summary: "Answer a work item: the body is the form's object, or any JSON where the task has no form",
    tag: 'workitems',
    allow: ['operator'],
    params: idPath,
    body: z.unknown(),
    bodyBytes: maxLaunchBytes,
    answer: outcome,
    others: {
      202: 'the answer is stored, and takes effect when a conductor takes it',
      400: 'the answer does not fit the form; every fault is listed with its path',
      ...ended,
      409: 'somebody else has claimed it',
    },
  },
});
