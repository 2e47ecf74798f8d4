// SPDX-License-Identifier: Apache-2.0

// A key set and tokens that its keys sign. OpenSSL's command line has made the keys (genrsa,
// ecparam) and the signatures (dgst -sha256 -sign), Python's base64 and json the rest. The private
// keys are gone.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster::queue_gateway::auth::testing {

inline constexpr char kRsaModulus[] =
    "tSAyHJ-KIEpBylHuWL3AKsMro0JiYsmjcdnGOi_ay7tUc_iy6Sp9XxIgqL7bQVok_tVmWaH9DkxePZ7bEGstFT74"
    "yqrX2yMc2AGtN18d_xN89dJCSFV5A8bC79uaegj7gXTm_jAEIlQp0oW4aUZs7XviZQXn4DNKm8vLSjDUjDW5zrBz"
    "a93pNLwYu4uD9O4nF_B1qTy_pOYjuiDyv4swV21sPRJcW9j-iDLyVyvTb4rpbqxkMCFRXcJJAtjc27C0RpQIOnOh"
    "4gidh707EeEdA_7aMKKwtpnOq8701wf6xKqMJGnse25rGYmLqSnWQ6Q586T5kaST9VOYjVbhsxBVTw";
inline constexpr char kEcX[] = "po0uV8zjWcYn_ECDdgMUheypVgXoIsEOvSBZhnKJ87o";
inline constexpr char kEcY[] = "didhfN4qkpHucmHGeVLF3OhPFivrxdEin7fjpyAZwls";

// The RSA key "r1" and the P-256 key "e1".
inline std::string TwoKeys() {
  return absl::StrCat(R"({"keys":[{"kty":"RSA","kid":"r1","use":"sig","e":"AQAB","n":")",
                      kRsaModulus, R"("},{"kty":"EC","kid":"e1","crv":"P-256","x":")", kEcX,
                      R"(","y":")", kEcY, R"("}]})");
}

// Tokens of https://sts.windows.net/c3/ for https://storage.azure.com, valid from the moment at
// which a FakeClock starts for one hour.
inline constexpr char kRs256Token[] =
    "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6InIxIn0.eyJpc3MiOiJodHRwczovL3N0cy53aW5kb3dz"
    "Lm5ldC9jMy8iLCJhdWQiOiJodHRwczovL3N0b3JhZ2UuYXp1cmUuY29tIiwibmJmIjoxMzIwOTY5NjAwLCJleHAi"
    "OjEzMjA5NzMyMDAsInN1YiI6InNhbGx5In0.l0kZJ8g_KcuA1aVK-BxVHWsDXoj3WCGspuSaj9qz3Tt0G92Avao3"
    "b40fz58OO_DHvu71ZVO5sSx_uCwdrUZLighsAf-W2Vu_udqnnzwlK2dMIeppBhdXdtZyfIb_rAbVQy937pj-RZf8"
    "B4Zgyc1fFxQox0f3IBXuaCR0VlQlezZp5UljYXUmttiHM63X3707MgBFYb15ocrKQb-pKox13BswZe1abzgGzuIJ"
    "SMte-ndgY7G9BaiAb0dkXo9McBhKQ2ATO9vnWnz2w4Re95f8F3wck-H5LPAPXO3bBw232_PTHUymjP7K8-Jz0I7f"
    "E_jeVaVLPPggQvHWM05G2GQDAw";
inline constexpr char kRs256TokenWithoutKeyId[] =
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwczovL3N0cy53aW5kb3dzLm5ldC9jMy8iLCJhdWQiOiJodHRwczo"
    "vL3N0b3JhZ2UuYXp1cmUuY29tIiwibmJmIjoxMzIwOTY5NjAwLCJleHAiOjEzMjA5NzMyMDAsInN1YiI6InNhbGx"
    "5In0.qHIpFeoDb3hk8Cy9HpWc-8wwyV4i29cmcSVNRUJ4m8ZTekHH9514x-X_hFaOsz2KH-otIawvpAAGw-bHedJ"
    "Dgy_KUZaopsDSn5XdJv4gbPFVcUHHTd4StybcoarAPKLWgxxmjFnghenAsea0wyw0VTe8Q9YNIz7PffI-EZNDx3F"
    "c89DPLjcap1Z7H2ElKsRJIUSkRd6mvQzwD2ku0MLtEA1zpHhvWzRJxwDcjRg4izWrKr_GC_refAXlHqLH0Sa-9Xp"
    "CbCiMjgWh9DHrCg5QrhljSkF9umYBzPTvohKzi6xhcTO7U883-SK1b62WyDQgsAwJYYkdbBJAnTUpg7pBjw";
inline constexpr char kEs256Token[] =
    "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImUxIn0.eyJpc3MiOiJodHRwczovL3N0cy53aW5kb3dz"
    "Lm5ldC9jMy8iLCJhdWQiOiJodHRwczovL3N0b3JhZ2UuYXp1cmUuY29tIiwibmJmIjoxMzIwOTY5NjAwLCJleHAi"
    "OjEzMjA5NzMyMDAsInN1YiI6InNhbGx5In0.G9WjSwj9ee7tzrqcACkj3LGdNuEWtdgKuapv-VqQYfdk4Q2lqu6_"
    "XfnMYZtXwwRP5eoSCjaKpGWfDQTL7-d7hg";

}  // namespace muster::queue_gateway::auth::testing
