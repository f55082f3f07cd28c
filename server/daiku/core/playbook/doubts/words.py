"""The words by which a text gives itself away: addresses, secrets, approvals, and what is said to the agent; en and ja."""

from __future__ import annotations

import re

from daiku.core.text.patterns import lazy
from daiku.domain.playbook import Doubt


def _any(*patterns: str) -> str:
    return "|".join(patterns)


_DOMAINS = (
    "com|net|org|io|dev|ai|co|jp|uk|de|fr|cn|ru|app|xyz|info|biz|me|tv|cc|us|eu|ca|au|kr|br|nl|ch|se|tk|ml|ga|cf|gq|top"
    "|site|online|cloud|tech|click|page|zone|onion|local|internal|intranet|lan|corp|home|invalid|example|edu|gov|mil|pro"
    "|shop|space|website|icu|pw|ws|su|gg|la|ly|fm|gl|network|systems|services|agency|life|world|today|news|blog|wiki"
    "|codes|party|stream|download|win|bid|loan|vip|fun|ooo|arpa|рф|日本|中国|コム"
)
_DOT = r"(?:\.|\[\.\]|\(\.\)|\[dot\]|\(dot\)|\s+dot\s+)"
_ADDRESS = _any(
    r"[a-z][a-z0-9+.-]{1,30}:\s?//|[uh]xxps?|\b(?:mailto|data|javascript|ftp|tel|magnet|file):\S|\bwww\s?\.",
    rf"(?<![\w.])(?:[\w-]+\s?{_DOT}\s?)+(?:{_DOMAINS})(?![\w(]|\.\w)",
    # a host by what stands behind it: a port or a path; a name with a port
    r"(?<![\w./-])[\w-]+(?:\.[a-z-]{2,})+(?::\d{2,5}|/[\w?#%=&-])(?<!\.d/)|\b[\w.-]+:\d{4,5}\b|\blocalhost\b",
    r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])|\b0x[0-9a-f]{8}\b",
    r"(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{0,4}|::1\b|::ffff:",
    # people, other machines, services to which things are sent
    r"[\w.+-]+\s?(?:@|\[at\]|\(at\)|＠)\s?[\w-]+\s?(?:\.|\[\.\]|\(dot\))\s?\w+|(?:^|[\s`])@[\w-]{2,}|\bgit@",
    r"\\\\[\w.-]+\\|/dev/tcp|\b(?:telegram|discord|slack|webhook|pastebin|gist|ngrok)\b",
)
_CONFIDENTIAL = _any(
    r"\b(?:api|access|secret|private|signing|encryption|ssh|gpg|auth|bearer|session|service)"
    r"[\s_-]*(?:key|token|secret|account|cookie)s?\b",
    r"\b(?:password|passwd|passphrase|credential|secret|token|cookie|keychain|keyring|vault|wallet|canary)s?\b|\bpwd=",
    r"\b\w*_(?:token|key|secret|password|passwd|pat|credentials?)\b|\[redacted\]",
    # where they are kept
    r"\.env\b|\bprintenv\b|\benviron(?:ment)?\s+variables?\b|\bos\.environ\b|process\.env\b|\bid_(?:rsa|ed25519|ecdsa)\b",
    r"\.(?:ssh|aws|netrc|npmrc|pypirc|kube|gnupg)\b|\.docker/config|/etc/(?:passwd|shadow)",
    # a long word of letters and digits is a key or a hash
    r"(?<![\w/.-])(?=[\w+/-]*\d)(?=[\w+/-]*[A-Za-z])[A-Za-z0-9+/_-]{28,}={0,2}(?![\w/.-])",
    r"パスワード|パスフレーズ|トークン|シークレット|クレデンシャル|秘密|機密|暗証|認証情報|資格情報|環境変数",
    r"(?:API|アクセス|秘密|暗号)?\s*(?:キー|鍵)(?:を|の|は|が)|密[码碼钥鑰]|令牌|凭证",
)
_APPROVAL = _any(
    r"\b(?:auto[\s-]*)?approv\w*|\bauto[\s-]*(?:accept|run|allow|confirm|execut)\w*|\bpermi(?:t|ts|tted|ssion|ssions)\b",
    r"\ballow(?:s|ed|list|-list|ing)?\b|\bwhitelist\w*|\bgrant(?:s|ed|ing)?\b|\bauthori[sz]\w*|\bconsent\w*",
    r"\bconfirm(?:s|ed|ing|ation|ations)?\b|\bsandbox\w*|\bjail\b|\byolo\b|\btrust(?:s|ed|ing)?\b|\bunattended\b",
    r"\b(?:without|no|never|not?|don'?t|stop|skip\w*|instead of)\b[\w\s'-]{0,24}"
    r"\b(?:ask\w*|prompt\w*|review\w*|question\w*|permission|warn\w*|check with)\b",
    r"\bskip(?:s|ped|ping)?\s+(?:the\s+|all\s+|any\s+)?"
    r"(?:tests?|checks?|verif\w*|valid\w*|hooks?|ci|lint\w*|safety|security|guard\w*)\b",
    r"\b(?:disabl|bypass|circumvent|overrid|evad|suppress|weaken|turn(?:s|ed|ing)?\s+off|switch(?:ed|ing)?\s+off)\w*",
    r"--(?:no-verify|no-sandbox|no-check[\w-]*|no-gpg[\w-]*|no-auth[\w-]*|no-confirm|force\b|force-with-lease|yes\b)",
    r"--(?:assume-yes|privileged|dangerously[\w-]*|allow[\w-]*|insecure|trust[\w-]*|unsafe[\w-]*|skip[\w-]*)",
    r"--(?:ignore-scripts=false|disable[\w-]*|break-system-packages|accept[\w-]*|non-?interactive)",
    r"\b(?:wait|waiting)\s+for\s+(?:a\s+|an\s+|the\s+)?(?:yes|ok|okay|answer|go-?ahead|person)\b|\bassume\s+yes\b|\bpre-?(?:cleared|approved)\b",
    r"\b(?:checks?|tests?|hooks?|reviews?|guards?)\s+(?:is|are)\s+(?:optional|off|unneeded|unnecessary|not\s+needed)\b|\bset\s+\+e\b",
    r"\bcore\.(?:fsmonitor|hookspath|sshcommand|pager|editor)|script-shell|\bGIT_\w+=|\bLD_PRELOAD\b|\b(?:straight|directly)\s+to\s+(?:main|master)\b",
    r"stricthostkeychecking|verify\s*=\s*false|ssl[\w\s]{0,12}(?:off|false|disable)",
    # more rights
    r"\b(?:sudo|doas|pkexec|su)\s+\S|\broot\s+(?:user|access|rights|privileges?)|\bas\s+root\b|\badmin\w*|\bprivileges?\b",
    r"\bchmod\b|\bchown\b|\bsetuid\b|\b777\b",
    # commands that fetch, run what was fetched, delete, publish, or change what runs later
    r"\b(?:curl|wget|fetch|iwr|nc|netcat|ncat|telnet|scp|rsync|ssh|sftp|ftp)\b|\|\s*(?:ba|z|da|k)?sh\b|\beval\b|\bexec\s",
    r"base64|\bxxd\b|\brm\s+-\w*[rf]|\brmdir\b|\bshred\b|\bmkfs\b|\bdd\s+if=|\bcrontab\b|\bsystemctl\b|\blaunchctl\b",
    r"\bgit\s+(?:push|config|reset|clean|remote|filter)|\bhooks?path\b|\bpre-?commit\s+hook|\.git/|\.daiku|\.vscode/",
    r"\.bashrc|\.zshrc|\.profile|\bnpm\s+publish|\btwine\s+upload|\bdeploy\w*",
    r"\bpip3?\s+install\s+[^-\s.]|\bnpm\s+(?:i|install|add)\s+[^-\s]|\buvx?\s+(?:add|pip|--with)|\bnpm\s+exec",
    r"\b(?:go|cargo|gem|brew)\s+install|\bapt(?:-get)?\b|--(?:extra-)?index-url|--registry|--with\b",
    r"承認|許可|同意|認可|権限|特権|管理者|root|信頼|サンドボックス|無効|オフに|デプロイ|強制|バイパス|回避|スキップ|飛ばし|止めず",
    r"確認(?:なし|無し|せず|は?不要|を?省|を?飛ば|しな|を?求め|なく|を?取ら|は?要ら|は?いら)|確認ダイアログ|自動(?:承認|実行|許可)",
    r"(?:聞|尋ね|訊|問い合わせ|相談|質問|レビュー|検証|検査|チェック|テスト)(?:か|し)?"
    r"(?:ず|ない|なく|なし|無し|をスキップ|を飛ば|を省|せず)",
    r"認められ|(?:たずね|聞く|尋ねる|待つ|承諾).{0,4}(?:必要(?:は|が)?(?:ない|な[くし])|不要)|(?:削除|消)して(?:も)?(?:よい|良い|いい|構わ)",
    r"批准|允许|允許|授权|跳过|沙盒",
)
_INSTRUCTION = _any(
    r"\b(?:ignor|disregard|forget|overrul|supersed|neglect)\w*|\binstructions?\b|\bprompts?\b",
    r"\b(?:previous|prior|earlier|above|preceding|foregoing|existing|original|other)\s+"
    r"(?:instruction|rule|prompt|message|guideline|directive|order|command|context|lesson)s?",
    r"\b(?:new|updated|real|actual|secret|hidden|special|following|these)\s+(?:instruction|directive|order|rule|task|prompt)s?\b",
    # whom it speaks to, and whom it speaks of behind their back
    r"\b(?:you|your|yours|yourself|you're|you'll|u)\b|\b(?:assistant|agents?|subagents?|bot|chatbot|llms?|models?|a\.?i\.?)\b",
    r"\b(?:copilot|claude|gpt|chatgpt|codex|gemini|cursor|daiku|openai|anthropic)\b",
    r"\b(?:the|this)\s+(?:user|person|human|developer|owner|maintainers?|operator|customer)\b",
    # marks of roles, tags, Markdown and templates
    r"(?:^|[\s\"'`#*\[<|])(?:system|assistant|user|developer|human|tool|function|role|instruction)\s*(?:[:：\]>|]|prompt|message)",
    r"<\s*/?\s*(?:system|user|assistant|instructions?|prompt|tool\w*|lessons?|rules|memor\w+|advice|context|function\w*|script)\b",
    r"<\s*/?\s*(?:img|iframe|svg|style|a|important|admin|data|input|output|playbook|bullet\w*|inst)\b|<\||<<sys>>|\[/?(?:inst|sys)\]",
    r"<!--|-->|\]\(|!\[|^\s*#{1,6}\s|-{3,}|={4,}|```|~~~|\{\{|\}\}|\{%",
    # what it wants
    r"\b(?:whatever|everything)\s+(?:the|in)\b|\b(?:has|have|take|takes)\s+(?:priority|precedence)\b|\bcarried\s+out\b|最優先|依頼",
    r"\bact\s+as\b|\bpretend\b|\brole-?play\b|\bfrom\s+now\s+on\b|\bhenceforth\b|\bjailbreak\w*|\b(?:dan|developer)\s+mode\b",
    r"\b(?:do\s+not|don'?t|never|without)\s+(?:tell|mention|reveal|show|report|inform|say|notif|disclos|explain|log)\w*\b",
    r"\b(?:silently|secretly|quietly|covertly|invisibly|discreetly)\b|\bexfiltrat\w*|\bexecute\b",
    r"\b(?:important|attention|urgent|warning|critical|mandatory|note\s+to|must\s+always)\b\s*[:!]",
    r"\bbefore\s+(?:doing\s+)?any(?:thing|\s)|\bfirst\s+of\s+all\b|\bat\s+the\s+(?:start|beginning|end)\s+of\s+(?:each|every|any)\b",
    r"\b(?:remember|memori[sz]e|obey|comply|follow)\b|\b(?:all|any|every)\s+(?:command|request|tool|call|action|operation)s?\b",
    r"\b(?:send|upload|post|forward|transmit|e-?mail|leak)\w*\s+(?:\w+\s+){0,8}(?:to|into|onto)\b",
    r"無視|忘れ|あなた|貴方|君は|お前|アシスタント|エージェント|モデル|人工知能|(?<![a-z])ai(?![a-z])|指示|命令|指令|プロンプト",
    r"システム\s*[:：]|システムメッセージ|ユーザー?(?:に|へ|には|の|は|が|を)|(?:利用者|開発者)(?:に|へ|には|は)",
    r"黙って|こっそり|密かに|ひそかに|気づかれ|気付かれ|言わず|見せず|(?:知らせ|伝え)(?:ず|ない|るな)|報告(?:せず|しない|するな)",
    r"役割|ふりを|振りを|演じ|従[いうえっわ]|これ(?:まで|以前)|以前の|以降は|今後(?:は|の)|いかなる|必ず(?:最初|まず|先)",
    r"(?:すべて|全て)の(?:コマンド|操作|要求)|(?:を|へ|に)(?:送信|送[っりるれ]|転送|アップロード|投稿)|流出|漏",
    r"忽略|无视|你|您|助手|提示词",
)
WORDS: tuple[tuple[Doubt, re.Pattern[str]], ...] = (
    ("address", lazy(_ADDRESS, re.IGNORECASE)),
    ("secret", lazy(_CONFIDENTIAL, re.IGNORECASE)),
    ("approval", lazy(_APPROVAL, re.IGNORECASE)),
    ("instruction", lazy(_INSTRUCTION, re.IGNORECASE | re.MULTILINE)),
)
"""What a text is searched for in each of its forms. It is better that ten harmless texts wait for a person than that one
that is not becomes active by itself."""
