/** Clears an instant: sets the counts of its tokens to 0. */
import { tenant } from '../client.ts';
import { useTokensAt } from '../job/use-job.ts';
import { Answer } from '../kit/answer.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { formatInstant } from '../time/format.ts';
import { ActionDialog, ActionFoot, ActionForm } from './action-dialog.tsx';
import { TokenList } from './token-list.tsx';
import { useAction } from './use-action.ts';

interface Props {
  readonly job: { readonly id: string; readonly name: string; readonly paused: boolean };
  readonly instant: string;
}

export function ClearInstantAction(props: Props) {
  return (
    <ActionDialog label="Clear" title={`Clear ${formatInstant(props.instant)}`}>
      {(close) => <Clear {...props} close={close} />}
    </ActionDialog>
  );
}

function Clear({ job, instant, close }: Props & { readonly close: () => void }) {
  const tokens = useTokensAt(job.id, instant);
  const clear = useAction({
    job: job.id,
    act: () => tenant('DELETE /api/jobs/{id}/tokens/{instant}', { params: { id: job.id, instant } }),
  });
  if (clear.data !== undefined) {
    return (
      <div className="action-form">
        <p role="status">{clear.data.tokens_cleared} cleared.</p>
        <ActionFoot close={close} />
      </div>
    );
  }
  const count = tokens.data?.length ?? 0;
  return (
    <ActionForm submit={() => clear.mutate()}>
      <p className="note">
        Counts go back to 0, and waiting retries are dropped. This runs nothing: a task runs again when it is activated,
        or when its dependencies complete again. Queued and running runs continue, and their results count.
      </p>
      <Answer of={tokens} what="Reading tokens">
        {(data) => (
          <div className="preview">
            <p>
              <strong>{data.length === 1 ? '1 token' : `${data.length} tokens`}</strong>
              {data.length === 0 ? ': there is nothing to clear.' : ' will be cleared:'}
            </p>
            <TokenList
              total={data.length}
              tokens={data.map((token) => ({
                task: token.task_name,
                instant: token.trigger_datetime,
                state: token.state,
              }))}
            />
          </div>
        )}
      </Answer>
      <ActionFoot
        close={close}
        act={clear.isPending ? 'Clearing…' : 'Clear'}
        kind="danger"
        disabled={clear.isPending || count === 0}
      >
        <InlineFailure error={clear.error} />
      </ActionFoot>
    </ActionForm>
  );
}
