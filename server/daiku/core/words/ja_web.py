"""Japanese for what the web did not give: engines and pages that were not reached, addresses that are refused."""

from __future__ import annotations

# fmt: off
WEB: tuple[tuple[str, str], ...] = (
    ("Note: {path}: given twice, the last one counts", "注: {path}: 二度書かれているので、最後のものを使います"),
    ("Note: {path}: its code fence is never closed; the reply may be cut off",
     "注: {path}: コードブロックが閉じていません。返答が途中で切れた可能性があります"),
    ("Note: {message}", "注: {message}"),
    ("Web: {message}", "ウェブ: {message}"),
    ("Note: {url} was not opened: {why}", "注: {url} は開けませんでした: {why}"),
    ("Web: {url} was not opened: {why}", "ウェブ: {url} は開けませんでした: {why}"),
    ("{url} was not opened: {why}", "{url} は開けませんでした: {why}"),
    ("Note: {engine} was not reached: {why}. Look at research.base_url.", "注: {engine} に接続できませんでした: {why}。research.base_url を確認してください。"),
    ("Web: {engine} was not reached: {why}. Look at research.base_url.", "ウェブ: {engine} に接続できませんでした: {why}。research.base_url を確認してください。"),
    ("Note: {engine} was not reached: {why}. Look at the network and the proxy settings, or {more}",
     "注: {engine} に接続できませんでした: {why}。ネットワークとプロキシの設定を確認するか、research.engine を変えてください。"),
    ("Web: {engine} was not reached: {why}. Look at the network and the proxy settings, or {more}",
     "ウェブ: {engine} に接続できませんでした: {why}。ネットワークとプロキシの設定を確認するか、research.engine を変えてください。"),
    ("Go on with what is known, and say that it was not looked up.", "調べられなかったので、分かっていることだけで進めます。"),
    ("- nothing found", "- 見つかりませんでした"),
    ("Nothing was looked up: {message}", "何も調べていません: {message}"),
    ("{host} could not be reached ({what})", "{host} に到達できません（{what}）"),
    ("{host} broke off ({what})", "{host} との接続が切れました（{what}）"),
    ("the name {host} could not be found ({what})", "名前 {host} が見つかりません（{what}）"),
    ("the name {host} has no address", "名前 {host} にアドレスがありません"),
    ("{host} leads inside: {what}; only public addresses can be reached", "{host} は内部のネットワークを指します（{what}）。公開アドレスにしか接続できません"),
    ("it was redirected more than {count} times", "{count} 回を超えて転送されました"),
    ("it leads to another site: {url}", "別のサイトへ転送されます: {url}"),
    ("there was no whole answer within {seconds} s", "{seconds} 秒以内に応答が届きませんでした"),
    ("the server answered {status}", "サーバーの応答は {status} でした"),
    ("the packed answer is damaged", "圧縮された応答が壊れています"),
    ("DuckDuckGo wants to see a person: too many searches came from this address", "DuckDuckGo が人による確認を求めています。このアドレスからの検索が多すぎます"),
    ("DuckDuckGo answered with a page that has no list of results", "DuckDuckGo の応答に検索結果がありません"),
    ("({count} searches left out: there are {most} in all.)", "（検索は全部で {most} 件までのため、{count} 件を省きました。）"),
)
