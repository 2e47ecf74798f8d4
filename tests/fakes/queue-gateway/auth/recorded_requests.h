// SPDX-License-Identifier: Apache-2.0

// What clients of Azure Queue Storage have sent and signed, as recorded: requests with a shared
// key, and shared access signatures. The account is devstoreaccount1 with its published key, the
// day 28 November 2026. Headers that nobody signs are left out, and ids are made up. A record is
//
//   # the client and its version, and the operation
//   METHOD TARGET            of a request; of a SAS, the query
//   header: value
//   signed: what the client signed, with \n for each line feed
//
// with an empty line between two.
#pragma once

namespace muster::queue_gateway::auth::testing {

// With a shared key.
inline constexpr char kRecordedRequests[] =
    R"(# js-12.32.0 create_queue
PUT /devstoreaccount1/vec-q?timeout=30
x-ms-version: 2026-04-06
x-ms-meta-camelkey: V One
x-ms-meta-lower: x
x-ms-client-request-id: d3d727d2-afee-42c6-9034-adc77d464d4b
x-ms-date: Sat, 28 Nov 2026 06:07:41 GMT
authorization: SharedKey devstoreaccount1:JBoAgXWdde0bhP/NRjQs4WLwTU5zZVYb+NWHzyT5lEQ=
content-length: 0
signed: PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:d3d727d2-afee-42c6-9034-adc77d464d4b\nx-ms-date:Sat, 28 Nov 2026 06:07:41 GMT\nx-ms-meta-camelkey:V One\nx-ms-meta-lower:x\nx-ms-version:2026-04-06\n/devstoreaccount1/devstoreaccount1/vec-q\ntimeout:30

# js-12.32.0 put_message
POST /devstoreaccount1/vec-q/messages?visibilitytimeout=5&messagettl=60&timeout=30
x-ms-version: 2026-04-06
content-type: application/xml
x-ms-client-request-id: e0e35dfa-1ddd-4669-bfa8-1a9e0d22f913
content-length: 145
x-ms-date: Sat, 28 Nov 2026 06:07:42 GMT
authorization: SharedKey devstoreaccount1:GEzyMEuJxpIbYplScMSGLKU2ePFeKmArAJn6CD4R/iM=
signed: POST\n\n\n145\n\napplication/xml\n\n\n\n\n\n\nx-ms-client-request-id:e0e35dfa-1ddd-4669-bfa8-1a9e0d22f913\nx-ms-date:Sat, 28 Nov 2026 06:07:42 GMT\nx-ms-version:2026-04-06\n/devstoreaccount1/devstoreaccount1/vec-q/messages\nmessagettl:60\ntimeout:30\nvisibilitytimeout:5

# js-12.32.0 get_metadata
GET /devstoreaccount1/vec-q?comp=metadata&timeout=30
x-ms-version: 2026-04-06
x-ms-client-request-id: 6b3f0b04-685e-49c3-b574-d88af1ebbdf9
x-ms-date: Sat, 28 Nov 2026 06:07:45 GMT
authorization: SharedKey devstoreaccount1:GmLsr0L+9gZAZm/UWHjte0VL7iRWIp3AHjL/pAmuGvc=
signed: GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:6b3f0b04-685e-49c3-b574-d88af1ebbdf9\nx-ms-date:Sat, 28 Nov 2026 06:07:45 GMT\nx-ms-version:2026-04-06\n/devstoreaccount1/devstoreaccount1/vec-q\ncomp:metadata\ntimeout:30

# js-12.32.0 list_queues
GET /devstoreaccount1?comp=list&prefix=vec&include=metadata&timeout=30
x-ms-version: 2026-04-06
x-ms-client-request-id: 36f86226-cf05-4c68-b2ab-d583c071849c
x-ms-date: Sat, 28 Nov 2026 06:07:46 GMT
authorization: SharedKey devstoreaccount1:pOtA34p5HbUDCoP9wpmBn2XKOBG/FGN70odw5xEjFB8=
signed: GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:36f86226-cf05-4c68-b2ab-d583c071849c\nx-ms-date:Sat, 28 Nov 2026 06:07:46 GMT\nx-ms-version:2026-04-06\n/devstoreaccount1/devstoreaccount1\ncomp:list\ninclude:metadata\nprefix:vec\ntimeout:30

# js-12.32.0 delete_message
DELETE /devstoreaccount1/vec-q/messages/00000000-1111-2222-3333-444444444444?popreceipt=AgA%2Ba%2Fb%3D%3D&timeout=30
x-ms-version: 2026-04-06
x-ms-client-request-id: 5eaa88eb-c979-4227-a86f-035488a35f9c
x-ms-date: Sat, 28 Nov 2026 06:07:48 GMT
authorization: SharedKey devstoreaccount1:LN+sSZObrhlPKow2W74rFdCbuVTqZU4P0n5aRAO/nr4=
signed: DELETE\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:5eaa88eb-c979-4227-a86f-035488a35f9c\nx-ms-date:Sat, 28 Nov 2026 06:07:48 GMT\nx-ms-version:2026-04-06\n/devstoreaccount1/devstoreaccount1/vec-q/messages/00000000-1111-2222-3333-444444444444\npopreceipt:AgA+a/b==\ntimeout:30

# js-12.32.0 update_message
PUT /devstoreaccount1/u-ok/messages/00000000-1111-2222-3333-444444444444?popreceipt=AgA%2Ba%2Fb%3D%3D&visibilitytimeout=10&timeout=30
x-ms-version: 2026-04-06
content-type: application/xml
x-ms-client-request-id: 8286f2bb-a4db-4d2c-afff-f25b7d97166d
content-length: 119
x-ms-date: Sat, 28 Nov 2026 05:45:55 GMT
authorization: SharedKey devstoreaccount1:J8avljdi4a07OCuhVePSOkQ46TI9ae98ie0rmRnJh1g=
signed: PUT\n\n\n119\n\napplication/xml\n\n\n\n\n\n\nx-ms-client-request-id:8286f2bb-a4db-4d2c-afff-f25b7d97166d\nx-ms-date:Sat, 28 Nov 2026 05:45:55 GMT\nx-ms-version:2026-04-06\n/devstoreaccount1/devstoreaccount1/u-ok/messages/00000000-1111-2222-3333-444444444444\npopreceipt:AgA+a/b==\ntimeout:30\nvisibilitytimeout:10

# js-12.32.0 put_message
POST /devstoreaccount1/x-ok/messages?timeout=30
x-ms-version: 2026-04-06
content-type: application/xml
x-ms-client-request-id: d1213b08-d1e1-4f91-95fe-5aaf81a863df
content-length: 113
content-language: LANG
content-encoding: ENC
x-ms-date: Sat, 28 Nov 2026 05:56:38 GMT
authorization: SharedKey devstoreaccount1:0rrpSOH4btnz6z9PNbOjgRVmLGs4XkCMy3wqAVo1MUo=
signed: POST\nLANG\nENC\n113\n\napplication/xml\n\n\n\n\n\n\nx-ms-client-request-id:d1213b08-d1e1-4f91-95fe-5aaf81a863df\nx-ms-date:Sat, 28 Nov 2026 05:56:38 GMT\nx-ms-version:2026-04-06\n/devstoreaccount1/devstoreaccount1/x-ok/messages\ntimeout:30

# js-legacy-2.10.7 create_queue
PUT /devstoreaccount1/vec-q
x-ms-meta-camelkey: V One
x-ms-meta-lower: x
x-ms-client-request-id: 188942f0-eaf2-11f1-ac5a-cb567f97195e
x-ms-version: 2018-03-28
x-ms-date: Sat, 28 Nov 2026 06:08:13 GMT
content-type: 
content-length: 0
authorization: SharedKey devstoreaccount1:S+obLHP9iVUgMWQ+np2wAJaV/CkRVLOUQvsa75L3/Vg=
signed: PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:188942f0-eaf2-11f1-ac5a-cb567f97195e\nx-ms-date:Sat, 28 Nov 2026 06:08:13 GMT\nx-ms-meta-camelkey:V One\nx-ms-meta-lower:x\nx-ms-version:2018-03-28\n/devstoreaccount1/devstoreaccount1/vec-q

# js-legacy-2.10.7 put_message
POST /devstoreaccount1/vec-q/messages?messagettl=60&visibilitytimeout=5
content-type: application/atom+xml;charset="utf-8"
content-length: 144
x-ms-client-request-id: 19bbcf80-eaf2-11f1-ac5a-cb567f97195e
x-ms-version: 2018-03-28
x-ms-date: Sat, 28 Nov 2026 06:08:15 GMT
authorization: SharedKey devstoreaccount1:8GuHmrdxUo96yc44iyNLdDPkNWrYlUvfEjvArNsQj64=
signed: POST\n\n\n144\n\napplication/atom+xml;charset="utf-8"\n\n\n\n\n\n\nx-ms-client-request-id:19bbcf80-eaf2-11f1-ac5a-cb567f97195e\nx-ms-date:Sat, 28 Nov 2026 06:08:15 GMT\nx-ms-version:2018-03-28\n/devstoreaccount1/devstoreaccount1/vec-q/messages\nmessagettl:60\nvisibilitytimeout:5

# js-legacy-2.10.7 get_metadata
GET /devstoreaccount1/vec-q?comp=metadata
x-ms-client-request-id: 1a9147f0-eaf2-11f1-ac5a-cb567f97195e
x-ms-version: 2018-03-28
x-ms-date: Sat, 28 Nov 2026 06:08:17 GMT
content-type: 
content-length: 0
authorization: SharedKey devstoreaccount1:e61ZiPD1qDUMXOFMbNFr+0Al4bI8x9S+8Js9V3Bq86E=
signed: GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:1a9147f0-eaf2-11f1-ac5a-cb567f97195e\nx-ms-date:Sat, 28 Nov 2026 06:08:17 GMT\nx-ms-version:2018-03-28\n/devstoreaccount1/devstoreaccount1/vec-q\ncomp:metadata

# js-legacy-2.10.7 list_queues
GET /devstoreaccount1/?comp=list&include=metadata&prefix=vec
x-ms-client-request-id: 1aeb00b0-eaf2-11f1-ac5a-cb567f97195e
x-ms-version: 2018-03-28
x-ms-date: Sat, 28 Nov 2026 06:08:17 GMT
content-type: 
content-length: 0
authorization: SharedKey devstoreaccount1:9hBLwPZlVTksMX6Of+dwAGYE6lfIFg/e1vy8klA2iZw=
signed: GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:1aeb00b0-eaf2-11f1-ac5a-cb567f97195e\nx-ms-date:Sat, 28 Nov 2026 06:08:17 GMT\nx-ms-version:2018-03-28\n/devstoreaccount1/devstoreaccount1/\ncomp:list\ninclude:metadata\nprefix:vec

# js-legacy-2.10.7 delete_message
DELETE /devstoreaccount1/vec-q/messages/00000000-1111-2222-3333-444444444444?popreceipt=AgA%2Ba%2Fb%3D%3D
x-ms-client-request-id: 1b497460-eaf2-11f1-ac5a-cb567f97195e
x-ms-version: 2018-03-28
x-ms-date: Sat, 28 Nov 2026 06:08:18 GMT
content-type: 
content-length: 0
authorization: SharedKey devstoreaccount1:86k/Q4ixkYN2jPELeTxhRU3JDup1OnOcAETURbDydLE=
signed: DELETE\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:1b497460-eaf2-11f1-ac5a-cb567f97195e\nx-ms-date:Sat, 28 Nov 2026 06:08:18 GMT\nx-ms-version:2018-03-28\n/devstoreaccount1/devstoreaccount1/vec-q/messages/00000000-1111-2222-3333-444444444444\npopreceipt:AgA+a/b==

# js-legacy-2.10.7 update_message
PUT /devstoreaccount1/u-ok/messages/00000000-1111-2222-3333-444444444444?popreceipt=AgA%2Ba%2Fb%3D%3D&visibilitytimeout=10
content-type: application/atom+xml;charset="utf-8"
content-length: 102
x-ms-client-request-id: 276cc880-eaef-11f1-8bae-57cdd0558481
x-ms-version: 2018-03-28
x-ms-date: Sat, 28 Nov 2026 05:47:10 GMT
authorization: SharedKey devstoreaccount1:tuBudfuxn87CSPiLjw+atS8oi0HkGFDDZSscNjK6hWU=
signed: PUT\n\n\n102\n\napplication/atom+xml;charset="utf-8"\n\n\n\n\n\n\nx-ms-client-request-id:276cc880-eaef-11f1-8bae-57cdd0558481\nx-ms-date:Sat, 28 Nov 2026 05:47:10 GMT\nx-ms-version:2018-03-28\n/devstoreaccount1/devstoreaccount1/u-ok/messages/00000000-1111-2222-3333-444444444444\npopreceipt:AgA+a/b==\nvisibilitytimeout:10

# py-12.18.1 create_queue
PUT /devstoreaccount1/vec-q
x-ms-meta-camelkey: V One
x-ms-meta-lower: x
x-ms-version: 2026-10-06
x-ms-meta: {'CamelKey': 'V One', 'lower': 'x'}
x-ms-date: Sat, 28 Nov 2026 06:08:34 GMT
x-ms-client-request-id: 25078df2-eaf2-11f1-96ce-02fc00000001
authorization: SharedKey devstoreaccount1:fnqUva2yBI/x/EFhTcb4jpYWY2JVTU/t1ZfonVtQ4WM=
content-length: 0
signed: PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:25078df2-eaf2-11f1-96ce-02fc00000001\nx-ms-date:Sat, 28 Nov 2026 06:08:34 GMT\nx-ms-meta:{'CamelKey': 'V One', 'lower': 'x'}\nx-ms-meta-camelkey:V One\nx-ms-meta-lower:x\nx-ms-version:2026-10-06\n/devstoreaccount1/devstoreaccount1/vec-q

# py-12.18.1 put_message
POST /devstoreaccount1/vec-q/messages?visibilitytimeout=5&messagettl=60
content-length: 124
content-type: application/xml
x-ms-version: 2026-10-06
x-ms-date: Sat, 28 Nov 2026 06:08:35 GMT
x-ms-client-request-id: 2567b27c-eaf2-11f1-96ce-02fc00000001
authorization: SharedKey devstoreaccount1:H9yA7MQCfY6Hl7Y2qYJKRXwRzeCmscR7IegHYu7/b1Y=
signed: POST\n\n\n124\n\napplication/xml\n\n\n\n\n\n\nx-ms-client-request-id:2567b27c-eaf2-11f1-96ce-02fc00000001\nx-ms-date:Sat, 28 Nov 2026 06:08:35 GMT\nx-ms-version:2026-10-06\n/devstoreaccount1/devstoreaccount1/vec-q/messages\nmessagettl:60\nvisibilitytimeout:5

# py-12.18.1 get_metadata
GET /devstoreaccount1/vec-q?comp=metadata
x-ms-version: 2026-10-06
x-ms-date: Sat, 28 Nov 2026 06:08:37 GMT
x-ms-client-request-id: 26d8d730-eaf2-11f1-96ce-02fc00000001
authorization: SharedKey devstoreaccount1:GLIoGgl8NGRNy450EWKxZiMf1LwMtc+gDfl6ZKV1p2k=
signed: GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:26d8d730-eaf2-11f1-96ce-02fc00000001\nx-ms-date:Sat, 28 Nov 2026 06:08:37 GMT\nx-ms-version:2026-10-06\n/devstoreaccount1/devstoreaccount1/vec-q\ncomp:metadata

# py-12.18.1 list_queues
GET /devstoreaccount1/?prefix=vec&include=metadata&comp=list
x-ms-version: 2026-10-06
x-ms-date: Sat, 28 Nov 2026 06:08:39 GMT
x-ms-client-request-id: 27913ac8-eaf2-11f1-96ce-02fc00000001
authorization: SharedKey devstoreaccount1:H2XmAgAUgBIQXlqpdcVv77DRHW77JbXNXnL+YSIWUxY=
signed: GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:27913ac8-eaf2-11f1-96ce-02fc00000001\nx-ms-date:Sat, 28 Nov 2026 06:08:39 GMT\nx-ms-version:2026-10-06\n/devstoreaccount1/devstoreaccount1/\ncomp:list\ninclude:metadata\nprefix:vec

# py-12.18.1 delete_message
DELETE /devstoreaccount1/vec-q/messages/00000000-1111-2222-3333-444444444444?popreceipt=AgA%2Ba%2Fb%3D%3D
x-ms-version: 2026-10-06
x-ms-date: Sat, 28 Nov 2026 06:08:40 GMT
x-ms-client-request-id: 2845e338-eaf2-11f1-96ce-02fc00000001
authorization: SharedKey devstoreaccount1:HA9ZsiJ9i+UzsHOCx/wLIng7+L+q2OAs5DRwMvFwCq4=
content-length: 0
signed: DELETE\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:2845e338-eaf2-11f1-96ce-02fc00000001\nx-ms-date:Sat, 28 Nov 2026 06:08:40 GMT\nx-ms-version:2026-10-06\n/devstoreaccount1/devstoreaccount1/vec-q/messages/00000000-1111-2222-3333-444444444444\npopreceipt:AgA+a/b==

# py-12.18.1 update_message
PUT /devstoreaccount1/u-ok/messages/00000000-1111-2222-3333-444444444444?popreceipt=AgA%2Ba%2Fb%3D%3D&visibilitytimeout=10
content-length: 103
x-ms-version: 2026-10-06
content-type: application/xml
x-ms-date: Sat, 28 Nov 2026 05:48:51 GMT
x-ms-client-request-id: 63b5bac2-eaef-11f1-b4e0-02fc00000001
authorization: SharedKey devstoreaccount1:3ndacCT/eHsb1WFK45aHsKp0E5Br0KMpZrt8uc23t50=
signed: PUT\n\n\n103\n\napplication/xml\n\n\n\n\n\n\nx-ms-client-request-id:63b5bac2-eaef-11f1-b4e0-02fc00000001\nx-ms-date:Sat, 28 Nov 2026 05:48:51 GMT\nx-ms-version:2026-10-06\n/devstoreaccount1/devstoreaccount1/u-ok/messages/00000000-1111-2222-3333-444444444444\npopreceipt:AgA+a/b==\nvisibilitytimeout:10

# py-12.18.1 put_message
POST /devstoreaccount1/x-ok/messages
content-length: 97
content-language: LANG
content-encoding: ENC
content-type: application/xml
x-ms-version: 2026-10-06
x-ms-date: Sat, 28 Nov 2026 05:56:40 GMT
x-ms-client-request-id: 7b27d5e0-eaf0-11f1-8dd1-02fc00000001
authorization: SharedKey devstoreaccount1:PEHqNyWU4szeDIBESQc4d5uf/97q4OBv8UdnpkjTLOQ=
signed: POST\nENC\nLANG\n97\n\napplication/xml\n\n\n\n\n\n\nx-ms-client-request-id:7b27d5e0-eaf0-11f1-8dd1-02fc00000001\nx-ms-date:Sat, 28 Nov 2026 05:56:40 GMT\nx-ms-version:2026-10-06\n/devstoreaccount1/devstoreaccount1/x-ok/messages

# py-12.1.6 create_queue
PUT /devstoreaccount1/vec-q
x-ms-meta: {'CamelKey': 'V One', 'lower': 'x'}
x-ms-version: 2018-03-28
x-ms-meta-camelkey: V One
x-ms-meta-lower: x
x-ms-date: Sat, 28 Nov 2026 06:09:01 GMT
x-ms-client-request-id: 34a43b7a-eaf2-11f1-8f01-02fc00000001
authorization: SharedKey devstoreaccount1:amKGRcRBnnNKHF6WA2DdiYXLSWMMs0ZDj4rmR38xUeg=
content-length: 0
signed: PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:34a43b7a-eaf2-11f1-8f01-02fc00000001\nx-ms-date:Sat, 28 Nov 2026 06:09:01 GMT\nx-ms-meta:{'CamelKey': 'V One', 'lower': 'x'}\nx-ms-meta-camelkey:V One\nx-ms-meta-lower:x\nx-ms-version:2018-03-28\n/devstoreaccount1/devstoreaccount1/vec-q

# py-12.1.6 put_message
POST /devstoreaccount1/vec-q/messages?visibilitytimeout=5&messagettl=60
x-ms-version: 2018-03-28
content-type: application/xml
content-length: 124
x-ms-date: Sat, 28 Nov 2026 06:09:01 GMT
x-ms-client-request-id: 351ccdf6-eaf2-11f1-8f01-02fc00000001
authorization: SharedKey devstoreaccount1:cXujxQx7+gETuDoCZqVEhgGL6g7ydbsD7JUr4zcfTXs=
signed: POST\n\n\n124\n\napplication/xml\n\n\n\n\n\n\nx-ms-client-request-id:351ccdf6-eaf2-11f1-8f01-02fc00000001\nx-ms-date:Sat, 28 Nov 2026 06:09:01 GMT\nx-ms-version:2018-03-28\n/devstoreaccount1/devstoreaccount1/vec-q/messages\nmessagettl:60\nvisibilitytimeout:5

# py-12.1.6 get_metadata
GET /devstoreaccount1/vec-q?comp=metadata
x-ms-version: 2018-03-28
x-ms-date: Sat, 28 Nov 2026 06:09:03 GMT
x-ms-client-request-id: 364e8278-eaf2-11f1-8f01-02fc00000001
authorization: SharedKey devstoreaccount1:IFEEt9yZF/kWAUQVJiWXu2eBerFN/8XYp+LwSJYteeU=
signed: GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:364e8278-eaf2-11f1-8f01-02fc00000001\nx-ms-date:Sat, 28 Nov 2026 06:09:03 GMT\nx-ms-version:2018-03-28\n/devstoreaccount1/devstoreaccount1/vec-q\ncomp:metadata

# py-12.1.6 list_queues
GET /devstoreaccount1/?comp=list&prefix=vec&include=metadata
x-ms-version: 2018-03-28
x-ms-date: Sat, 28 Nov 2026 06:09:05 GMT
x-ms-client-request-id: 370cf244-eaf2-11f1-8f01-02fc00000001
authorization: SharedKey devstoreaccount1:g8ESXaUoE4bm5ySZFPiWL2VXRANFl0PQoyh8fkLu1/Y=
signed: GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:370cf244-eaf2-11f1-8f01-02fc00000001\nx-ms-date:Sat, 28 Nov 2026 06:09:05 GMT\nx-ms-version:2018-03-28\n/devstoreaccount1/devstoreaccount1/\ncomp:list\ninclude:metadata\nprefix:vec

# py-12.1.6 delete_message
DELETE /devstoreaccount1/vec-q/messages/00000000-1111-2222-3333-444444444444?popreceipt=AgA%2Ba%2Fb%3D%3D
x-ms-version: 2018-03-28
x-ms-date: Sat, 28 Nov 2026 06:09:06 GMT
x-ms-client-request-id: 37a5f61a-eaf2-11f1-8f01-02fc00000001
authorization: SharedKey devstoreaccount1:37lywAxs3VoqoGuA6NKWIhxtoSiSkgAJE6Cl0BYNAnQ=
content-length: 0
signed: DELETE\n\n\n\n\n\n\n\n\n\n\n\nx-ms-client-request-id:37a5f61a-eaf2-11f1-8f01-02fc00000001\nx-ms-date:Sat, 28 Nov 2026 06:09:06 GMT\nx-ms-version:2018-03-28\n/devstoreaccount1/devstoreaccount1/vec-q/messages/00000000-1111-2222-3333-444444444444\npopreceipt:AgA+a/b==

# py-12.1.6 update_message
PUT /devstoreaccount1/u-ok/messages/00000000-1111-2222-3333-444444444444?popreceipt=AgA%2Ba%2Fb%3D%3D&visibilitytimeout=10
x-ms-version: 2018-03-28
content-type: application/xml
content-length: 103
x-ms-date: Sat, 28 Nov 2026 05:49:58 GMT
x-ms-client-request-id: 8ba0bc62-eaef-11f1-b597-02fc00000001
authorization: SharedKey devstoreaccount1:5cfkLcEeh4GK3ue0X5puz5QP9Z+egS4/EcnxGpt2+Sw=
signed: PUT\n\n\n103\n\napplication/xml\n\n\n\n\n\n\nx-ms-client-request-id:8ba0bc62-eaef-11f1-b597-02fc00000001\nx-ms-date:Sat, 28 Nov 2026 05:49:58 GMT\nx-ms-version:2018-03-28\n/devstoreaccount1/devstoreaccount1/u-ok/messages/00000000-1111-2222-3333-444444444444\npopreceipt:AgA+a/b==\nvisibilitytimeout:10

# java-12.29.0 create_queue
PUT /devstoreaccount1/vec-q
date: Sat, 28 Nov 2026 06:09:43 GMT
authorization: SharedKey devstoreaccount1:ddwgcNdYeDckTtRwDNCV8CWLm0UCJvH2kHXc9Suj3fw=
x-ms-meta-lower: x
x-ms-version: 2026-04-06
x-ms-meta-camelkey: V One
x-ms-client-request-id: ec509570-24bc-4518-ab49-ec2fa5d4653b
content-length: 0
signed: PUT\n\n\n\n\n\nSat, 28 Nov 2026 06:09:43 GMT\n\n\n\n\n\nx-ms-client-request-id:ec509570-24bc-4518-ab49-ec2fa5d4653b\nx-ms-meta-camelkey:V One\nx-ms-meta-lower:x\nx-ms-version:2026-04-06\n/devstoreaccount1/devstoreaccount1/vec-q

# java-12.29.0 put_message
POST /devstoreaccount1/vec-q/messages?visibilitytimeout=5&messagettl=60
date: Sat, 28 Nov 2026 06:09:54 GMT
authorization: SharedKey devstoreaccount1:czI8P9RooiBhBnXmbG309FyiHmfWuw6AkNAG7ISZBpw=
x-ms-version: 2026-04-06
content-type: application/xml
x-ms-client-request-id: 781fb57b-cf19-4139-bdc2-288b5a4dc95b
content-length: 120
signed: POST\n\n\n120\n\napplication/xml\nSat, 28 Nov 2026 06:09:54 GMT\n\n\n\n\n\nx-ms-client-request-id:781fb57b-cf19-4139-bdc2-288b5a4dc95b\nx-ms-version:2026-04-06\n/devstoreaccount1/devstoreaccount1/vec-q/messages\nmessagettl:60\nvisibilitytimeout:5

# java-12.29.0 get_metadata
GET /devstoreaccount1/vec-q?comp=metadata
date: Sat, 28 Nov 2026 06:09:59 GMT
authorization: SharedKey devstoreaccount1:Vhx7/cQ05WSc+okxTute6S5se4AqTgBfjnkbgSxcUms=
content-length: 0
x-ms-version: 2026-04-06
x-ms-client-request-id: 036f2c13-1614-4288-a9cd-84fb7fbbdc1f
signed: GET\n\n\n\n\n\nSat, 28 Nov 2026 06:09:59 GMT\n\n\n\n\n\nx-ms-client-request-id:036f2c13-1614-4288-a9cd-84fb7fbbdc1f\nx-ms-version:2026-04-06\n/devstoreaccount1/devstoreaccount1/vec-q\ncomp:metadata

# java-12.29.0 list_queues
GET /devstoreaccount1?comp=list&prefix=vec&include=metadata
date: Sat, 28 Nov 2026 06:10:02 GMT
authorization: SharedKey devstoreaccount1:jPLhIeOzS7oBHbKQhd+N+oamxKXio3dfjUD1rs/NzJ8=
content-length: 0
x-ms-version: 2026-04-06
x-ms-client-request-id: 0045ed4c-425f-44a6-9731-3c4bf16b9b2e
signed: GET\n\n\n\n\n\nSat, 28 Nov 2026 06:10:02 GMT\n\n\n\n\n\nx-ms-client-request-id:0045ed4c-425f-44a6-9731-3c4bf16b9b2e\nx-ms-version:2026-04-06\n/devstoreaccount1/devstoreaccount1\ncomp:list\ninclude:metadata\nprefix:vec

# java-12.29.0 delete_message
DELETE /devstoreaccount1/vec-q/messages/00000000-1111-2222-3333-444444444444?popreceipt=AgA%2Ba/b%3D%3D
date: Sat, 28 Nov 2026 06:10:05 GMT
authorization: SharedKey devstoreaccount1:K9W81CMQP/7bwWgw6TRevdfSK7txpKbsJw/TgOyssTo=
content-length: 0
x-ms-version: 2026-04-06
x-ms-client-request-id: 0533f82a-cd53-47af-bef1-7341fb09259b
signed: DELETE\n\n\n\n\n\nSat, 28 Nov 2026 06:10:05 GMT\n\n\n\n\n\nx-ms-client-request-id:0533f82a-cd53-47af-bef1-7341fb09259b\nx-ms-version:2026-04-06\n/devstoreaccount1/devstoreaccount1/vec-q/messages/00000000-1111-2222-3333-444444444444\npopreceipt:AgA+a/b==

# java-12.29.0 update_message
PUT /devstoreaccount1/u-ok/messages/00000000-1111-2222-3333-444444444444?popreceipt=AgA%2Ba/b%3D%3D&visibilitytimeout=10
date: Sat, 28 Nov 2026 05:59:36 GMT
authorization: SharedKey devstoreaccount1:/GBDXHDhsVWE3+vh6QTDhbkd8vQ/YZi3bN5BIPA2ay4=
x-ms-version: 2026-04-06
content-type: application/xml
x-ms-client-request-id: 7c3bc4a5-c34f-4fbd-8c34-7150e21bfeb3
content-length: 102
signed: PUT\n\n\n102\n\napplication/xml\nSat, 28 Nov 2026 05:59:36 GMT\n\n\n\n\n\nx-ms-client-request-id:7c3bc4a5-c34f-4fbd-8c34-7150e21bfeb3\nx-ms-version:2026-04-06\n/devstoreaccount1/devstoreaccount1/u-ok/messages/00000000-1111-2222-3333-444444444444\npopreceipt:AgA+a/b==\nvisibilitytimeout:10

# go-1.0.1 create_queue
PUT /devstoreaccount1/vec-q
content-length: 0
authorization: SharedKey devstoreaccount1:DorpjEXQD/RapN8v1ajBoftU/AA/+0Hci6ZK6TAKbZw=
x-ms-date: Sat, 28 Nov 2026 06:10:45 GMT
x-ms-meta-camelkey: V One
x-ms-meta-lower: x
x-ms-version: 2024-08-04
signed: PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Sat, 28 Nov 2026 06:10:45 GMT\nx-ms-meta-camelkey:V One\nx-ms-meta-lower:x\nx-ms-version:2024-08-04\n/devstoreaccount1/devstoreaccount1/vec-q

# go-1.0.1 put_message
POST /devstoreaccount1/vec-q/messages?messagettl=60&visibilitytimeout=5
content-length: 132
authorization: SharedKey devstoreaccount1:L/mI6pjnzLcdU8K3TE5ROJUmdJ3J+ULYuvFvQjkhoTk=
content-type: application/xml
x-ms-date: Sat, 28 Nov 2026 06:10:45 GMT
x-ms-version: 2024-08-04
signed: POST\n\n\n132\n\napplication/xml\n\n\n\n\n\n\nx-ms-date:Sat, 28 Nov 2026 06:10:45 GMT\nx-ms-version:2024-08-04\n/devstoreaccount1/devstoreaccount1/vec-q/messages\nmessagettl:60\nvisibilitytimeout:5

# go-1.0.1 get_metadata
GET /devstoreaccount1/vec-q?comp=metadata
authorization: SharedKey devstoreaccount1:01e1QnTxHzfSui3pYMTN450uXQs0reHWk9Ikl5rtFLk=
x-ms-date: Sat, 28 Nov 2026 06:10:46 GMT
x-ms-version: 2024-08-04
signed: GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Sat, 28 Nov 2026 06:10:46 GMT\nx-ms-version:2024-08-04\n/devstoreaccount1/devstoreaccount1/vec-q\ncomp:metadata

# go-1.0.1 list_queues
GET /devstoreaccount1?comp=list&include=metadata&prefix=vec
authorization: SharedKey devstoreaccount1:bq8OLwGGsYszz9X06Vyb0ipXEWnsj/GvgzARST048yY=
x-ms-date: Sat, 28 Nov 2026 06:10:47 GMT
x-ms-version: 2024-08-04
signed: GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Sat, 28 Nov 2026 06:10:47 GMT\nx-ms-version:2024-08-04\n/devstoreaccount1/devstoreaccount1\ncomp:list\ninclude:metadata\nprefix:vec

# go-1.0.1 delete_message
DELETE /devstoreaccount1/vec-q/messages/00000000-1111-2222-3333-444444444444?popreceipt=AgA%2Ba%2Fb%3D%3D
authorization: SharedKey devstoreaccount1:PlEEb5ztbWeAk2tL7QTnSWT1f8+QRX+iqJM07qWj/O8=
x-ms-date: Sat, 28 Nov 2026 06:10:47 GMT
x-ms-version: 2024-08-04
signed: DELETE\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Sat, 28 Nov 2026 06:10:47 GMT\nx-ms-version:2024-08-04\n/devstoreaccount1/devstoreaccount1/vec-q/messages/00000000-1111-2222-3333-444444444444\npopreceipt:AgA+a/b==

# go-1.0.1 update_message
PUT /devstoreaccount1/u-ok/messages/00000000-1111-2222-3333-444444444444?popreceipt=AgA%2Ba%2Fb%3D%3D&visibilitytimeout=10
content-length: 103
authorization: SharedKey devstoreaccount1:kI59dsQpip6w5RUC6wH63m4gDsGOMv+KWPB8ArIvAl8=
content-type: application/xml
x-ms-date: Sat, 28 Nov 2026 06:03:35 GMT
x-ms-version: 2024-08-04
signed: PUT\n\n\n103\n\napplication/xml\n\n\n\n\n\n\nx-ms-date:Sat, 28 Nov 2026 06:03:35 GMT\nx-ms-version:2024-08-04\n/devstoreaccount1/devstoreaccount1/u-ok/messages/00000000-1111-2222-3333-444444444444\npopreceipt:AgA+a/b==\nvisibilitytimeout:10)";

// Of the queue "sasq", and of the account.
inline constexpr char kRecordedSas[] =
    R"(# java_n_q
sv=2026-04-06&spr=https%2Chttp&st=2026-01-01T00%3A00%3A00Z&se=2027-01-01T00%3A00%3A00Z&sip=127.0.0.1-127.0.0.2&sp=raup&sig=%2FiZKLIju0VnXbMv4YKeQ4yizMpElOXHqsfk1VYwUHtQ%3D
signed: raup\n2026-01-01T00:00:00Z\n2027-01-01T00:00:00Z\n/queue/devstoreaccount1/sasq\n\n127.0.0.1-127.0.0.2\nhttps,http\n2026-04-06

# java_n_si
sv=2026-04-06&si=pol1&sig=xFXWv8Qhsz5Z4EBdEZF4u2qWh71l42o7QMXpUzw%2FqA8%3D
signed: \n\n\n/queue/devstoreaccount1/sasq\npol1\n\n\n2026-04-06

# java_n_a
sv=2026-06-06&ss=q&srt=sco&se=2027-01-01T00%3A00%3A00Z&sp=rwdlacup&sig=9FuYYafisq0sATN9rGcK0xCSD0sBRYvl%2FsHPnk7Mte0%3D
signed: devstoreaccount1\nrwdlacup\nq\nsco\n\n2027-01-01T00:00:00Z\n\n\n2026-06-06\n\n

# py_new_q
st=2026-01-01T00%3A00%3A00Z&se=2027-01-01T00%3A00%3A00Z&sp=raup&sip=127.0.0.1-127.0.0.2&spr=https%2Chttp&sv=2026-10-06&sig=Afae/ovNTst4BykVRAoxsqPqviTgXo7nFwaj4QuoRjI%3D
signed: raup\n2026-01-01T00:00:00Z\n2027-01-01T00:00:00Z\n/queue/devstoreaccount1/sasq\n\n127.0.0.1-127.0.0.2\nhttps,http\n2026-10-06

# py_new_a
se=2027-01-01T00%3A00%3A00Z&sp=rwdlacup&sv=2026-10-06&ss=q&srt=sco&sig=nVwpeKnFICQzhXpEnPUS%2B7wW6mImCQ/O6L1beBEFVnQ%3D
signed: devstoreaccount1\nrwdlacup\nq\nsco\n\n2027-01-01T00:00:00Z\n\n\n2026-10-06\n\n

# py_new_si
sv=2026-10-06&si=pol1&sig=PBoufBojqY%2BcWesYgf/iZllivMNEOwOstPzPUbvKj1M%3D
signed: \n\n\n/queue/devstoreaccount1/sasq\npol1\n\n\n2026-10-06

# py_old_a
se=2027-01-01T00%3A00%3A00Z&sp=rwdlacup&sv=2018-03-28&ss=q&srt=sco&sig=aS1Fb%2B3xbs2YSfadYSUjT3JRE2i4Tdg3KBNhnKGj/gM%3D
signed: devstoreaccount1\nrwdlacup\nq\nsco\n\n2027-01-01T00:00:00Z\n\n\n2018-03-28\n

# py_old_si
sv=2018-03-28&si=pol1&sig=d7xNOMsiiP6yVsvV2SzifW5V9ku7mZCmUmo/KcWcXUE%3D
signed: \n\n\n/queue/devstoreaccount1/sasq\npol1\n\n\n2018-03-28

# js_new_qsas
sv=2026-06-06&spr=https%2Chttp&st=2026-01-01T00%3A00%3A00Z&se=2027-01-01T00%3A00%3A00Z&sip=127.0.0.1-127.0.0.2&sp=raup&sig=ktXgxQO1fuZ7KBvbPmIL%2Fs8emRSe0lNopNKO7gGOKoY%3D
signed: raup\n2026-01-01T00:00:00Z\n2027-01-01T00:00:00Z\n/queue/devstoreaccount1/sasq\n\n127.0.0.1-127.0.0.2\nhttps,http\n2026-06-06

# js_new_qsas_si
sv=2026-06-06&si=pol1&sig=c%2FsjNtmzJrdi663Kt2UjKa6Xv%2F2a9fFkDQolssThaqA%3D
signed: \n\n\n/queue/devstoreaccount1/sasq\npol1\n\n\n2026-06-06

# js_new_asas
sv=2026-06-06&ss=q&srt=sco&se=2027-01-01T00%3A00%3A00Z&sp=rwdlacup&sig=9FuYYafisq0sATN9rGcK0xCSD0sBRYvl%2FsHPnk7Mte0%3D
signed: devstoreaccount1\nrwdlacup\nq\nsco\n\n2027-01-01T00:00:00Z\n\n\n2026-06-06\n\n

# js_legacy_q
st=2026-01-01T00%3A00%3A00Z&se=2027-01-01T00%3A00%3A00Z&sp=raup&sip=127.0.0.1-127.0.0.2&spr=https%2Chttp&sv=2018-03-28&sig=pbIECbgfEXUVvN7GGirNPlWrKbdGl9nBoRT9ubXJMTI%3D
signed: raup\n2026-01-01T00:00:00Z\n2027-01-01T00:00:00Z\n/queue/devstoreaccount1/sasq\n\n127.0.0.1-127.0.0.2\nhttps,http\n2018-03-28

# js_legacy_a
sv=2018-03-28&ss=q&srt=sco&sp=rwdlacup&se=2027-01-01T00%3A00%3A00Z&sig=aS1Fb%2B3xbs2YSfadYSUjT3JRE2i4Tdg3KBNhnKGj%2FgM%3D
signed: devstoreaccount1\nrwdlacup\nq\nsco\n\n2027-01-01T00:00:00Z\n\n\n2018-03-28\n)";

// Of the queue "sasq", by a delegation key whose bytes are "a test key".
inline constexpr char kRecordedDelegations[] =
    R"(# npm @azure/storage-queue 12.32.0
sv=2026-06-06&spr=https&st=2026-01-01T00%3A00%3A00Z&se=2026-01-02T00%3A00%3A00Z&sr=q&sp=rp&sig=%2BWHf5KTDmVREGr1AIg1Yl12L%2FNN9F42Wy0hGx5aEUcs%3D&skoid=11111111-1111-1111-1111-111111111111&sktid=22222222-2222-2222-2222-222222222222&skt=2026-01-01T00%3A00%3A00Z&ske=2026-01-07T00%3A00%3A00Z&sks=q&skv=2026-04-06
signed: rp\n2026-01-01T00:00:00Z\n2026-01-02T00:00:00Z\n/queue/devstoreaccount1/sasq\n11111111-1111-1111-1111-111111111111\n22222222-2222-2222-2222-222222222222\n2026-01-01T00:00:00Z\n2026-01-07T00:00:00Z\nq\n2026-04-06\n\n\n\nhttps\n2026-06-06

# PyPI azure-storage-queue 12.18.1
st=2026-01-01T00%3A00%3A00Z&se=2026-01-02T00%3A00%3A00Z&sp=rp&spr=https&sv=2026-10-06&skoid=11111111-1111-1111-1111-111111111111&sktid=22222222-2222-2222-2222-222222222222&skt=2026-01-01T00%3A00%3A00Z&ske=2026-01-07T00%3A00%3A00Z&sks=q&skv=2026-10-06&sig=B2UbUiqNJ9XZEuJqJQpG3K5BCyVIl13Y%2Bc1C1JR2hu4%3D
signed: rp\n2026-01-01T00:00:00Z\n2026-01-02T00:00:00Z\n/queue/devstoreaccount1/sasq\n11111111-1111-1111-1111-111111111111\n22222222-2222-2222-2222-222222222222\n2026-01-01T00:00:00Z\n2026-01-07T00:00:00Z\nq\n2026-10-06\n\n\n\nhttps\n2026-10-06)";

}  // namespace muster::queue_gateway::auth::testing
