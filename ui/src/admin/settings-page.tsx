/** Settings: the appearance in this browser, the tenant's pools and stash, and the configuration of the installation. */
import { useQuery } from '@tanstack/react-query';
import { gateway } from '../client.ts';
import { Answer } from '../kit/answer.tsx';
import { Choice } from '../kit/choice.tsx';
import { useTitle } from '../kit/title.ts';
import { keys } from '../queries.ts';
import './admin.css';
import { InstallationTable } from './installation-table.tsx';
import { Pools } from './pools.tsx';
import { Stash } from './stash.tsx';
import { chooseTheme, useTheme } from '../kit/theme.ts';

const looks = [
  { value: 'system', label: 'Same as system' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
] as const;

export default function SettingsPage() {
  useTitle('Settings');
  const theme = useTheme();
  const installation = useQuery({
    queryKey: keys.installation,
    queryFn: ({ signal }) => gateway('GET /api/installation', { signal }),
  });
  return (
    <>
      <header className="page-head">
        <h1>Settings</h1>
      </header>
      <div className="settings">
        <section aria-labelledby="look">
          <h2 id="look">Appearance in this browser</h2>
          <Choice label="Appearance" options={looks} value={theme} change={chooseTheme} />
        </section>
        <Pools />
        <Stash />
        <Answer of={installation} what="Reading the installation">
          {(data) => <InstallationTable installation={data} />}
        </Answer>
      </div>
    </>
  );
}
