/** What the browser's tab says. */
import { useEffect } from 'react';

export function useTitle(title: string | undefined): void {
  useEffect(() => {
    document.title = title === undefined ? 'millrace' : `${title} · millrace`;
  }, [title]);
}
