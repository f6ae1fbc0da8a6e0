/** Answers by link: the token in the path is the only credential. The gateway serves this path for all tenants. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';
import { time } from '../shapes.ts';

/** Bytes of an answer, as of every other result of a task. */
const maxAnswerBytes = 256 * 1024;

const tokenPath = z.object({ token: z.string().min(1).max(2_000) });
const ended = { 404: 'the link is not known', 410: 'the task was answered already, or its step has ended' } as const;

export const answerEndpoints = endpoints({
  'GET /answers/{token}': {
    summary: 'The task that waits for an answer by this link. A browser that asks for HTML gets the page with its form',
    tag: 'answers',
    allow: ['anyone'],
    params: tokenPath,
    answer: z.object({
      /** Null: the link is for a program that was called. */
      title: z.string().nullable(),
      /** The fields of the answer, as the author of the flow wrote them; null: any JSON value. */
      form: z.record(z.string(), z.unknown()).nullable(),
      flow: z.string(),
      /** Of the task. */
      name: z.string(),
      input: z.unknown().optional(),
      due_at: time.nullable(),
      /** Who answers it at the moment, and until when. */
      claimed_by: z.string().nullable(),
      claimed_until: time.nullable(),
    }),
    others: ended,
  },
  'POST /answers/{token}': {
    summary: 'Answer the task: the object of its form, or any JSON value if it has none',
    tag: 'answers',
    allow: ['anyone'],
    params: tokenPath,
    body: z.unknown(),
    bodyBytes: maxAnswerBytes,
    answer: z.object({ outcome: z.enum(['committed', 'accepted']), detail: z.string().optional() }),
    others: {
      ...ended,
      202: 'the answer is stored, and takes effect when a conductor takes it',
      409: 'somebody else has claimed the task',
    },
  },
});
