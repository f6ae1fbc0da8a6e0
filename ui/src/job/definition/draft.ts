/** Unsaved text of a document, kept for as long as the browser's tab lives: a look at another page loses nothing. */
import { useCallback, useEffect, useState } from 'react';
import { tenantBase } from '../../client.ts';

interface Draft {
  readonly text: string;
  /** The version it was begun from; 0 for a new job. */
  readonly version: number;
}

const nameOf = (subject: string) => `millrace draft ${tenantBase}/${subject}`;

function readDraft(subject: string): Draft | undefined {
  try {
    const kept = sessionStorage.getItem(nameOf(subject));
    return kept === null ? undefined : (JSON.parse(kept) as Draft);
  } catch {
    return undefined;
  }
}

function keepDraft(subject: string, draft: Draft | undefined): void {
  try {
    if (draft === undefined) sessionStorage.removeItem(nameOf(subject));
    else sessionStorage.setItem(nameOf(subject), JSON.stringify(draft));
  } catch {
    // storage may be full or forbidden: then a draft lives only as long as its page
  }
}

/** The draft, and how to set or drop it (`undefined`). While there is one, leaving the site asks first. */
export function useDraft(subject: string): [Draft | undefined, (draft: Draft | undefined) => void] {
  const [draft, setDraft] = useState(() => readDraft(subject));
  const set = useCallback(
    (next: Draft | undefined) => {
      keepDraft(subject, next);
      setDraft(next);
    },
    [subject],
  );
  const isThere = draft !== undefined;
  useEffect(() => {
    if (!isThere) return undefined;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [isThere]);
  return [draft, set];
}
