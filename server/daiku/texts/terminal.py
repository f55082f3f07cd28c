"""What the terminal says, in English and Japanese."""

from __future__ import annotations

import os
from collections.abc import Mapping

from daiku.texts.catalogue import translator

CHAT_HELP = """\
/model [NAME]  show or choose the model
/mode [ask|plan|act]  show or choose the mode
/undo  take back the last change of files
/sessions  earlier conversations
/session ID  go on with one
/new  a new conversation
While it works: type to tell it something, /stop (or Ctrl-C) to stop it
/quit  leave (or Ctrl-D)"""
CHAT_HELP_JA = """\
/model [名前]  モデルの表示・選択
/mode [ask|plan|act]  モードの表示・選択
/undo  直前のファイル変更を取り消す
/sessions  以前の会話
/session ID  会話を続ける
/new  新しい会話
実行中: 文を打てば伝わります。/stop（または Ctrl-C）で止まります
/quit  終了（Ctrl-D でも可）"""

TEXTS: dict[str, tuple[str, str]] = {
    # help
    "help": (
        "Daiku: an AI software engineer for your editor and your terminal.",
        "Daiku: エディターと端末で働く AI ソフトウェアエンジニア。",
    ),
    "help.run": ("Do one thing in this folder. PROMPT - reads stdin.", "このフォルダーで一つの依頼を行います。PROMPT に - を渡すと標準入力を読みます。"),
    "help.chat": ("Talk in the terminal.", "端末で会話します。"),
    "help.plan": ("Let the planner alone make a plan for GOAL.", "プランナーだけで GOAL の計画を作ります。"),
    "help.opt.work": ("Work the plan too: write, run, check, report.", "計画を実行まで進めます（作成・実行・確認・報告）。"),
    "help.research": ("Let the researcher alone look up QUESTION.", "リサーチャーだけで QUESTION を調べます。"),
    "help.code": ("Let the coder alone write what TEXT says.", "コーダーだけで TEXT の内容を書きます。"),
    "help.exec": ("Let the runner alone run what TEXT says.", "ランナーだけで TEXT の内容を実行します。"),
    "help.resume": ("Go on with a run that was paused, interrupted, or ended before it was done.", "一時停止・中断した実行や、途中で終わった実行を続けます。"),
    "help.sessions": (
        "Conversations: list, show, changes, undo, export, replay, delete.",
        "会話: 一覧、表示、変更、取り消し、書き出し、再現、削除。",
    ),
    "help.sessions.changes": (
        "Show what a conversation changed and nobody decided on yet.",
        "会話で変更され、まだ確認されていない内容を表示します。",
    ),
    "help.sessions.undo": (
        "Take back what the last run of a conversation did to files.",
        "会話の最後の実行によるファイルの変更を取り消します。",
    ),
    "help.opt.to": (
        "Go back to this checkpoint instead (also one that an undo named: that takes the undo back).",
        "このチェックポイントまで戻します（取り消し時に表示されたものを指定すると、取り消しを元に戻します）。",
    ),
    "changes.none": ("Nothing is left to decide on.", "確認待ちの変更はありません。"),
    "changes.binary": ("{path}: no text", "{path}: テキストではありません"),
    "undo.back": (
        "Back again: daiku sessions undo {session} --to {checkpoint}",
        "元に戻すには: daiku sessions undo {session} --to {checkpoint}",
    ),
    "help.sessions.list": ("List conversations, newest first.", "会話を新しい順に一覧します。"),
    "help.sessions.show": ("Show a conversation.", "会話を表示します。"),
    "help.sessions.export": ("Write a conversation to stdout.", "会話を標準出力に書き出します。"),
    "help.sessions.replay": (
        "Run a session again from its journal, without a model, and report the first difference.",
        "記録からモデルなしで再実行し、最初の違いを報告します。",
    ),
    "help.sessions.delete": ("Delete a conversation and its trace.", "会話とその記録を削除します。"),
    "help.models": ("Models that can be used, and why others cannot.", "使えるモデルと、使えない理由を一覧します。"),
    "help.tools": ("Tools that an agent can use.", "エージェントが使えるツールを一覧します。"),
    "help.mcp": ("MCP servers: list, allow, forget.", "MCP サーバー: 一覧、許可、取り消し。"),
    "help.mcp.list": ("How each configured server stands.", "設定された各サーバーの状態を表示します。"),
    "help.mcp.allow": ("Allow a server in this folder, and sign in to it where it wants that.", "このフォルダーでサーバーを許可し、必要ならサインインします。"),
    "help.mcp.forget": ("Take the permission back and sign out.", "許可を取り消し、サインアウトします。"),
    "help.grants": ("What was answered with “always” in this folder: list, revoke.", "このフォルダーで「常に」と答えたもの: 一覧、取り消し。"),
    "help.grants.list": ("Everything that is allowed or rejected for always here.", "ここで常に許可または拒否しているものを一覧します。"),
    "help.grants.revoke": ("Take answers back, by their number in the list or their words: they are asked again.", "一覧の番号または文言で指定した答えを取り消し、次からまた確認します。"),
    "help.grants.all": ("all of them", "すべて"),
    "grants.none": ("Nothing is allowed or rejected for always in this folder.", "このフォルダーで常に許可または拒否しているものはありません。"),
    "grants.allow": ("allowed", "許可"),
    "grants.reject": ("rejected", "拒否"),
    "grants.gone": ("Asked again from now on: {what}", "これからはまた確認します: {what}"),
    "grants.unknown": ("Nothing here is called {name}. See daiku grants list.", "{name} というものはありません。daiku grants list で確認してください。"),
    "grants.which": ("Say which, or --all. See daiku grants list.", "どれかを指定するか、--all を付けてください。daiku grants list で確認できます。"),
    "plugin.off": (
        "a plug-in that is not allowed; if you want its tools: plugins.allow = [\"{package}\"] in your own settings",
        "許可されていないプラグインです。ツールを使うには、自分の設定に plugins.allow = [\"{package}\"] と書いてください",
    ),
    "plugin.broken": ("a plug-in that cannot be used: {why}", "使えないプラグインです: {why}"),
    "mcp.none": ("No MCP server is configured ([[mcp_servers]] in the settings).", "MCP サーバーは設定されていません（設定の [[mcp_servers]]）。"),
    "mcp.unknown": ("There is no usable MCP server {name}. There are: {names}.", "使える MCP サーバー {name} はありません。あるもの: {names}。"),
    "mcp.forgotten": ("{name} is asked for again before it is used.", "{name} は次に使う前に確認します。"),
    "mcp.ready": ("ready", "使用可"),
    "mcp.starting": ("still starting", "起動中"),
    "mcp.down": ("not running", "停止中"),
    "mcp.unasked": ("not allowed yet", "未許可"),
    "mcp.changed": ("changed", "変更あり"),
    "mcp.rejected": ("rejected", "拒否済み"),
    "mcp.unusable": ("not usable", "使用不可"),
    "help.config": ("Settings: show them, trust a folder's own.", "設定: 表示、フォルダーの設定の信頼。"),
    "help.config.show": ("Show every setting and where it comes from.", "すべての設定とその出どころを表示します。"),
    "help.config.trust": ("Trust the settings file of a folder.", "フォルダーの設定ファイルを信頼します。"),
    "help.config.untrust": ("Trust it no longer.", "信頼を取り消します。"),
    "help.doctor": ("Look for what is wrong and say how to mend it.", "問題を調べ、直し方を示します。"),
    "help.trace": ("Write the trace of SESSION as JSON lines.", "SESSION のトレースを JSON 行で書き出します。"),
    "help.lsp": ("The language server over stdio.", "言語サーバー（標準入出力）。"),
    "help.opt.dir": ("Work in DIR.", "DIR で作業します。"),
    "help.opt.model": ("Model, also as provider/name.", "モデル名（provider/name も可）。"),
    "help.opt.mode": ("ask: only answer; plan: only plan; act: do it.", "ask: 答えるだけ、plan: 計画だけ、act: 実行。"),
    "help.opt.approve": (
        "What is allowed without asking (default: ask on a terminal, none without one).",
        "確認なしで許すもの（既定: 端末では ask、それ以外は none）。",
    ),
    "help.opt.json": ("One chunk per line on stdout.", "標準出力に 1 行 1 チャンクで出力します。"),
    "help.opt.session": ("Go on with session ID.", "セッション ID の会話を続けます。"),
    "help.opt.continue": ("Go on with this folder's last conversation.", "このフォルダーの直前の会話を続けます。"),
    "help.opt.max_cost": ("Stop at this cost in USD.", "この費用（USD）で止めます。"),
    "help.opt.max_tokens": ("Stop after this many tokens.", "このトークン数で止めます。"),
    "help.opt.max_rounds": ("Stop after this many model calls.", "このモデル呼び出し回数で止めます。"),
    "help.opt.max_seconds": ("Stop after this many seconds.", "この秒数で止めます。"),
    "help.opt.tcp": ("Listen on HOST:PORT instead of stdio.", "標準入出力の代わりに HOST:PORT で待ち受けます。"),
    "help.opt.list_json": ("As JSON.", "JSON で出力します。"),
    # while it runs
    "thinking": ("thinking", "考え中"),
    "waiting": ("waiting for the model", "モデルの返事待ち"),
    "running": ("running", "実行中"),
    "how_to_stop": ("Ctrl-C stops it", "Ctrl-C で停止"),
    "scripted": ("a script is playing, no model answers", "台本の再生で、モデルは答えません"),
    "lines": ("{count} lines", "{count} 行"),
    "change.create": ("new", "新規"),
    "change.delete": ("deleted", "削除"),
    "change.rename": ("moved", "移動"),
    "more_lines": ("… {count} more lines", "… 残り {count} 行"),
    "cancelling": ("Stopping. Press Ctrl-C again to kill.", "停止しています。もう一度 Ctrl-C で強制終了します。"),
    "cancelled": ("Stopped.", "停止しました。"),
    "cut_off": ("(This answer was cut off here.)", "（この回答はここで途切れました。）"),
    "limit": ("Stopped at a limit.", "上限に達したので止まりました。"),
    "no_approval": (
        "Something needed a person's word, and nobody was there to give it.",
        "人の判断が必要でしたが、尋ねる相手がいませんでした。",
    ),
    "no_approval.none": (
        "Run in a terminal; or grant beforehand what may be granted: --approve edits (files), all (commands too).",
        "端末で実行するか、許可できるものを先に許可してください: --approve edits（ファイル）、all（コマンドも）。",
    ),
    "no_approval.edits": (
        "Run in a terminal; --approve all also grants commands, but never what always asks a person.",
        "端末で実行してください。--approve all はコマンドも許可しますが、必ず人に確認するものは許可されません。",
    ),
    "no_approval.all": (
        "Run in a terminal: no option grants this.",
        "端末で実行してください。これを許可するオプションはありません。",
    ),
    "plan.left": (
        "The plan “{name}” is not finished: {done} of {all} steps are done, {failed} failed.",
        "計画「{name}」は終わっていません: {all} ステップ中 {done} 完了、{failed} 失敗。",
    ),
    "usage": ("{prompt} in · {completion} out", "入力 {prompt} · 出力 {completion}"),
    "usage.cached": (" ({cached} cached)", "（キャッシュ {cached}）"),
    "go_on": ("go on: daiku run --session {session} …", "続ける: daiku run --session {session} …"),
    "resume_with": ("go on: daiku resume {run}", "再開: daiku resume {run}"),
    "plan.approved": ("Plan approved: {name}", "計画を承認: {name}"),
    "plan.progress": ("Plan: {name} ({done} of {all} done)", "計画: {name}（{all} のうち {done} 完了）"),
    # approvals and questions
    "approve.read": ("Show the model this file?", "このファイルをモデルに見せますか？"),
    "approve.edit": ("Change files?", "ファイルを変更しますか？"),
    "approve.command": ("Run this command?", "このコマンドを実行しますか？"),
    "approve.network": ("Reach the network?", "ネットワークに接続しますか？"),
    "approve.mcp": ("Call this tool of another program?", "外部プログラムのツールを呼びますか？"),
    "approve.plan": ("Go ahead with this plan?", "この計画で進めますか？"),
    "approve.keys": ("[y] yes  {always}[n] no  [f] no, and say why", "[y] はい  {always}[n] いいえ  [f] 理由を伝えて断る"),
    "approve.always": (
        "[a] always ({what}; kept for this folder, daiku grants takes it back)  ",
        "[a] 常に許可（{what}。このフォルダーに記録、取り消しは daiku grants）  ",
    ),
    "approve.pick": ("[p] pick changes  ", "[p] 変更を選ぶ  "),
    "pick.title": ("Change {number} of {count}", "変更 {number}/{count}"),
    "pick.keys": (
        "[y] make it  [n] leave it out  [a] make all from here  [d] leave out all from here  [k] one back  [q] back",
        "[y] 行う  [n] 除外  [a] ここから全部行う  [d] ここから全部除外  [k] 1つ戻る  [q] 戻る",
    ),
    "pick.yes": ("will be made", "行います"),
    "pick.no": ("left out", "除外します"),
    "pick.done": ("{count} of {all} changes will be made", "{all} 件中 {count} 件の変更を行います"),
    "pick.feedback": ("What is wrong with the others? (Enter: nothing) ", "除外した理由は？（Enter で省略） "),
    "approve.details": ("[d] details  ", "[d] 詳細  "),
    "approve.yes": ("allowed", "許可しました"),
    "approve.always.done": ("always allowed", "常に許可しました"),
    "approve.no": ("rejected", "断りました"),
    "approve.feedback": ("What should be done instead? ", "代わりにどうしますか？ "),
    "question": ("Question", "質問"),
    "question.choose": ("Number or text: ", "番号または文: "),
    "answer": ("Answer: ", "答え: "),
    # chat
    "chat.welcome": ("Daiku, {model}, in {folder}. /help shows what you can type.", "Daiku、{model}、{folder}。/help で入力できるものを表示します。"),
    "chat.help": (CHAT_HELP, CHAT_HELP_JA),
    "chat.unknown": ("There is no {command}. /help shows what there is.", "{command} はありません。/help で一覧を表示します。"),
    "chat.mode": ("Mode: {mode}", "モード: {mode}"),
    "chat.model": ("Model: {model}", "モデル: {model}"),
    "chat.new": ("A new conversation.", "新しい会話です。"),
    "chat.session": ("Session {session}: {title}", "セッション {session}: {title}"),
    "chat.nothing_to_undo": ("There is nothing to undo.", "取り消すものはありません。"),
    "chat.undone": ("Taken back: {files}", "取り消しました: {files}"),
    "chat.nothing_runs": ("Nothing is running.", "実行中のものはありません。"),
    "steered": ("told to the model at its next turn", "次のターンでモデルに伝えます"),
    "chat.bye": ("Bye.", "終了します。"),
    # lists
    "none_yet": ("There are none yet.", "まだありません。"),
    "deleted": ("Deleted {session}.", "{session} を削除しました。"),
    "review.accept": ("✓ accepted: {path}", "✓ 承認: {path}"),
    "review.reject": ("↶ rejected and undone: {path}", "↶ 却下して元に戻しました: {path}"),
    "restored": ("↶ restored: {files}", "↶ 復元しました: {files}"),
    "stays": ("Not undone, because it ran since then:", "その後に実行されたため、元に戻せないもの:"),
    "stays.code": ("exit code {code}", "終了コード {code}"),
    "replay.same": ("{events} events, no difference.", "{events} 件のイベント、違いはありません。"),
    "replay.differs": ("The first difference is at seq {seq}:", "最初の違いは seq {seq} です:"),
    "recorded": ("recorded", "記録"),
    "replayed": ("replayed", "再現"),
    "models.unreachable": ("not usable: {why}", "使えません: {why}"),
    "models.context": ("{tokens} tokens", "{tokens} トークン"),
    "trusted": ("{folder} is trusted: its .daiku/config.toml may set everything but keys.", "{folder} を信頼しました。.daiku/config.toml は鍵以外のすべてを設定できます。"),
    "untrusted": ("{folder} is not trusted.", "{folder} は信頼されていません。"),
    "config.nothing_yet": ("does nothing in this version", "この版では何の働きもしません"),
    "config.default": ("default", "既定"),
    "config.ignored": ("daiku config trust", "daiku config trust で信頼"),
    # doctor
    "doctor.good": ("Everything is in order.", "すべて正常です。"),
    "doctor.bad": ("{count} to mend.", "直すべきもの: {count} 件。"),
    # mistakes
    "error.prompt_empty": ("The prompt is empty. Say what to do: daiku run \"…\"", "依頼が空です。することを書いてください: daiku run \"…\""),
    "error.prompt_utf8": ("{where} is not UTF-8 text.", "{where} が UTF-8 のテキストではありません。"),
    "error.prompt_large": ("{where} is larger than {limit} bytes.", "{where} が {limit} バイトを超えています。"),
    "error.output": ("The output cannot be written: {why}.", "出力を書き込めません: {why}。"),
    "error.folder": ("There is no folder {folder}.", "フォルダー {folder} がありません。"),
    "error.both_sessions": ("--session and --continue exclude each other.", "--session と --continue は同時に使えません。"),
    "error.no_last_session": ("There is no earlier conversation in {folder}. Leave --continue away.", "{folder} に以前の会話がありません。--continue を外してください。"),
    "error.ask_nobody": (
        "--approve ask needs a terminal. Use --approve edits, all or none.",
        "--approve ask には端末が必要です。--approve edits、all、none を使ってください。",
    ),
    "error.internal": ("Something unexpected went wrong: {what}. The log has the details: {log}", "予期しない問題が起きました: {what}。詳細はログにあります: {log}"),
    "error.help": ("See: {command} --help", "参照: {command} --help"),
}  # fmt: skip


def locale_of(environ: Mapping[str, str]) -> str:
    """`ja` or `en`, from the usual variables in their order."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environ.get(name):
            return "ja" if value.lower().startswith("ja") else "en"
    return "en"


def told(text: str) -> str:
    """A text of the server in the person's language."""
    return translator(locale_of(os.environ))(text)


def say(key: str, **values: object) -> str:
    """The text of `key` in the person's language."""
    english, japanese = TEXTS[key]
    return (japanese if locale_of(os.environ) == "ja" else english).format(**values)
