/** Tokens of Routemaster: keys with the role `client` of the tenant that the path names. */
import { z } from 'zod';
import { endpoints } from '../../http/endpoint.ts';

const token = z.object({ name: z.string(), token: z.string() });

export const tokenEndpoints = endpoints({
  'POST /bus/api_tokens': {
    summary: 'Create a client key, with a secret of at least 16 characters that the caller may choose',
    tag: 'bus',
    allow: ['root'],
    // read as JSON whatever its content type
    body: 'bytes',
    documented: {
      body: z.object({
        name: z.string().describe('the name of the client'),
        token: z.string().nullable().optional().describe('at least 16 characters; without it, one is made'),
      }),
    },
    bodyBytes: 4_096,
    status: 201,
    answer: token,
  },
  'GET /bus/api_tokens': {
    summary: 'Client keys; `token` is their public id, because secrets are not stored',
    tag: 'bus',
    allow: ['root'],
    answer: z.array(token),
  },
  'DELETE /bus/api_tokens/{token}': {
    summary: 'Revoke a client key by its secret or its public id, and remove its subscriber',
    tag: 'bus',
    allow: ['root'],
    params: z.object({ token: z.string().min(1).max(300).describe('the secret, or the public id as listed') }),
    status: 204,
    answer: 'none',
  },
});
