// The frame of a page of Daiku's own in an editor tab: it runs its own script and style, and fetches nothing.

interface PageParts {
  title: string;
  language: string;
  nonce: string;
  style: string;
  script: string;
  /** What stands below the title, as HTML. */
  body: string;
}

export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

export function htmlPage({ title, language, nonce, style, script, body }: PageParts): string {
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; form-action 'none'`;
  return `<!DOCTYPE html>
<html lang="${escapeHtml(language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>${escapeHtml(title)}</title>
<style nonce="${nonce}">${style}</style>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
${body}
</main>
<script nonce="${nonce}">${script}</script>
</body>
</html>`;
}
