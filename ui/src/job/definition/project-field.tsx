/** The project of a new job. A project that does not exist can be created here. */
import { useQuery } from '@tanstack/react-query';
import { useAction } from '../../actions/use-action.ts';
import { tenant } from '../../client.ts';
import { InlineFailure } from '../../kit/failure.tsx';
import { Field } from '../../kit/field.tsx';
import { fetchProjects } from '../../jobs/fetch-projects.ts';
import { keys } from '../../queries.ts';

export function useProjectNames() {
  return useQuery({
    queryKey: [...keys.projects, 'names'],
    queryFn: async ({ signal }) => (await fetchProjects(signal)).map((project) => project.name),
  });
}

interface Props {
  readonly value: string;
  readonly names: readonly string[] | undefined;
  /** The projects are still loading: the field is disabled, so that the proposed project does not change while typing. */
  readonly isWaiting: boolean;
  readonly change: (name: string) => void;
}

export function ProjectField({ value, names, isWaiting, change }: Props) {
  const isMissing = value !== '' && names !== undefined && !names.includes(value);
  return (
    <div className="project-field">
      <Field label="Project" hint={isMissing ? 'This project does not exist yet.' : 'The same as in the document'}>
        {(wiring) => (
          <>
            <input
              {...wiring}
              className="input"
              value={value}
              disabled={isWaiting}
              list={`${wiring.id}-names`}
              autoComplete="off"
              onChange={(event) => change(event.currentTarget.value)}
            />
            <datalist id={`${wiring.id}-names`}>
              {(names ?? []).map((name) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          </>
        )}
      </Field>
      {isMissing ? <MakeProject name={value} /> : null}
    </div>
  );
}

function MakeProject({ name }: { readonly name: string }) {
  const make = useAction({
    job: undefined,
    outdates: [keys.projects],
    act: () => tenant('PUT /api/projects', { body: { name } }),
  });
  return (
    <span>
      <button type="button" className="button" disabled={make.isPending} onClick={() => make.mutate()}>
        Create project {name}
      </button>
      <InlineFailure error={make.error} />
    </span>
  );
}
