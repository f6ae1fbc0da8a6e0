/** Saves the document of an existing or a new job. */
import { useQueryClient } from '@tanstack/react-query';
import { useAction } from '../../actions/use-action.ts';
import { tenant } from '../../client.ts';
import { keys } from '../../queries.ts';
import { yamlHeaders } from '../../document/use-check.ts';
import type { Applied } from './use-job-check.ts';

/** `onSaved` is called once the job has been read again, so that the old text does not reappear. */
export function useSave(job: string | undefined, onSaved: (answer: Applied) => void) {
  const client = useQueryClient();
  return useAction({
    job,
    outdates: [keys.projects, keys.search, ...(job === undefined ? [] : [keys.jobWritten(job)])],
    act: async (text: string) => {
      const answer = await tenant('PUT /api/jobs', { body: text, headers: yamlHeaders });
      if (job !== undefined) await client.refetchQueries({ queryKey: keys.jobState(job, 'job') });
      return answer;
    },
    onDone: onSaved,
  });
}
