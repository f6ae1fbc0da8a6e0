/** Audit */
export default function AuditPage() {
  return <h1>Audit</h1>;
}
