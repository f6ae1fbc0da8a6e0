/** Unsaved text of a document, kept as long as the browser's tab, so that visiting another page loses nothing. */
import { useCallback, useEffect, useState } from 'react';
import { tenantBase } from '../client.ts';

interface Draft {
  readonly text: string;
  /** The version it is based on; 0 for a new job. */
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
    // storage may be full or blocked: then the draft lasts only as long as the page
  }
}

/** The draft and a function that sets or drops it (`undefined`). While there is a draft, leaving the site asks first. */
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
