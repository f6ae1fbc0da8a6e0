/** Operations on one execution: signals, cancel, kill, pause, resume, and retry, skip, cancel and kill of a step. */
import type { Operation } from '../../../flows/interpreter/state.ts';
import type { Input } from '../../../http/endpoint.ts';
import type { ApiContext, ApiHandlers } from '../../context.ts';
import { answerOf, type ClientBody, deliver, messageIdOf } from '../deliver.ts';
import { requireSmall } from '../value-size.ts';
import { operateMany } from './many.ts';
import type { operateEndpoints } from './endpoints.ts';

type Endpoints = typeof operateEndpoints;
type Asked = Pick<Input<Endpoints['POST /api/executions/{id}/cancel']>, 'params' | 'caller' | 'request'>;
type NodeAsked = Pick<
  Input<Endpoints['POST /api/executions/{id}/nodes/{node}/retry']>,
  'params' | 'caller' | 'request'
>;

async function send({ params, caller, request }: Asked, ctx: ApiContext, body: ClientBody): Promise<Response> {
  const letter = { execution: params.id.toLowerCase(), body, id: messageIdOf(request) };
  const [delivered] = await deliver(ctx, caller, [letter]);
  return answerOf(ctx, delivered);
}

function operate(asked: Asked, ctx: ApiContext, operation: Operation): Promise<Response> {
  return send(asked, ctx, { point: 'operate', operation });
}

/** An operation on the whole execution. */
const whole =
  (action: 'cancel' | 'kill' | 'pause' | 'resume') =>
  (asked: Asked, ctx: ApiContext): Promise<Response> =>
    operate(asked, ctx, action === 'cancel' || action === 'kill' ? { action, nid: null } : { action });

/** An operation on a step. */
const ofNode =
  (action: 'retry' | 'cancel' | 'kill') =>
  (asked: NodeAsked, ctx: ApiContext): Promise<Response> =>
    operate(asked, ctx, { action, nid: asked.params.node });

export const operateHandlers: ApiHandlers<Endpoints> = {
  'POST /api/executions/{id}/signals': (input, ctx) => {
    const { name, payload } = input.body;
    return send(input, ctx, { point: 'signal', name, payload: requireSmall(payload, 'body.payload') });
  },
  'POST /api/executions/{id}/cancel': whole('cancel'),
  'POST /api/executions/{id}/kill': whole('kill'),
  'POST /api/executions/{id}/pause': whole('pause'),
  'POST /api/executions/{id}/resume': whole('resume'),
  'POST /api/executions/{id}/nodes/{node}/retry': ofNode('retry'),
  'POST /api/executions/{id}/nodes/{node}/skip': (input, ctx) => {
    const result = requireSmall(input.body.result, 'body.result');
    return operate(input, ctx, { action: 'skip', nid: input.params.node, result });
  },
  'POST /api/executions/{id}/nodes/{node}/cancel': ofNode('cancel'),
  'POST /api/executions/{id}/nodes/{node}/kill': ofNode('kill'),
  'POST /api/executions/operate': operateMany,
};
